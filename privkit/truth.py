"""What only the auditor knows. It is used to score attacks, and no attack ever gets it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Truth:
    """The answers to the questions that a run's candidates ask.

    Attributes:
        members: for each candidate record, whether its client trained on it; shape [N].
        canary_signs: for each canary, whether it was planted as it stands (true) or negated; shape [K].
        clean: prototypes before noise but after the mechanism's own clip and mean, by (round, client);
            shape [P, d] each, rows as released. Empty when the run did not keep them.
    """

    members: Bool[np.ndarray, " N"]
    canary_signs: Bool[np.ndarray, " K"]
    clean: dict[tuple[int, int], np.ndarray]
