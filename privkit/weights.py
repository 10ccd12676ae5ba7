"""What a client holds just before it sends trained parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from accountant.contract import DependsOn


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights:
    """Trained parameters of one client.

    Attributes:
        named: by parameter name, each without a client axis.
        received: what the client last got in the place of some of these, as its server knows it.
        steps: of local training since its last message; 0 before the first training.
        sampling_rate: share of its records that a step is made of, in (0, 1].
        depends_on: what they were computed from.
    """

    named: Mapping[str, np.ndarray]
    depends_on: DependsOn
    received: Mapping[str, np.ndarray] = field(default_factory=dict)
    steps: int = 0
    sampling_rate: float = 1.0

    @property
    def as_all_began(self) -> bool:
        """Return whether no record has gone into any of it."""
        return self.steps == 0 and set(self.named) <= set(self.received)
