"""What a client holds just before it sends trained parameters."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from accountant.contract import DependsOn


@dataclass(frozen=True, eq=False, kw_only=True)
class Weights:
    """Trained parameters of one client.

    Attributes:
        named: by parameter name, each without a client axis.
        depends_on: what they were computed from.
    """

    named: Mapping[str, np.ndarray]
    depends_on: DependsOn
