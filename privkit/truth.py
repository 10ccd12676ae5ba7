"""What only the auditor knows. It is used to score attacks, and no attack ever gets it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64


class Hidden(NamedTuple):
    """What a mechanism computed on the way to one release, and did not send.

    Attributes:
        means: prototypes (or sums) before noise but after the mechanism's own clip and mean, rows as released;
            [P, d].
        groups: which group of the event's noise each coordinate belongs to, from 0; shape [d].
        counts: records behind each row, where noise was added to sums and counts; shape [P]; else ``None``.
        overlap: share of the coordinates that truly separate the client's classes best which are in group 0,
            shape [1]; ``None`` where no group was chosen.
        received: what the server sent before in the place of a message of weights, which is one row then; shape [d].
        moments: what else noise was added to, where it was: sums of squares and uncertainties; shape [P, q].
    """

    means: Float64[np.ndarray, "P d"]
    groups: Int64[np.ndarray, " d"]
    counts: Float64[np.ndarray, " P"] | None = None
    overlap: Float64[np.ndarray, " 1"] | None = None
    received: Float64[np.ndarray, " d"] | None = None
    moments: Float64[np.ndarray, "P q"] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Truth:
    """The answers to the questions that a run's candidates ask.

    Attributes:
        members: for each candidate record, whether its client trained on it; shape [N].
        canary_signs: for each canary, whether it was planted as it stands (true) or negated; shape [K].
        hidden: what was computed on the way to each release, by (round, client); empty when the run did
            not keep it.
        others: the answer of each canary of another kind, by its kind; shape [K] each.
    """

    members: Bool[np.ndarray, " N"]
    canary_signs: Bool[np.ndarray, " K"]
    hidden: dict[tuple[int, int], Hidden]
    others: dict[str, Bool[np.ndarray, " _"]] = field(default_factory=dict)

    @property
    def answers(self) -> dict[str, np.ndarray]:
        """Return the answers to each kind of question, by what is asked about."""
        return {"records": self.members, "canaries": self.canary_signs, **self.others}
