"""What a rebuilding attacker made, and all that it knows of each image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64


@dataclass(frozen=True, eq=False, kw_only=True)
class Attempts:
    """Rebuilt images and all that the attacker knows of each.

    Attributes:
        images: pixels in [0, 1], shape [N, c, height, width].
        losses: what was minimised, shape [N].
        cosines: between the image's embedding under the attacker's encoder and its goal, shape [N].
        steps: optimisation steps, shape [N].
        converged: whether the stop rule, not the budget, ended it; shape [N].
    """

    images: Float32[np.ndarray, "N c height width"]
    losses: Float64[np.ndarray, " N"]
    cosines: Float64[np.ndarray, " N"]
    steps: Int64[np.ndarray, " N"]
    converged: Bool[np.ndarray, " N"]

    def __len__(self) -> int:
        return len(self.losses)

    @classmethod
    def joined(cls, parts: "Sequence[Attempts]") -> "Attempts":
        """Return several lots of attempts as one."""
        return cls(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})

    def best_of(self, restarts: int) -> "Attempts":
        """Return, of every ``restarts`` attempts in a row, the one with the smallest loss."""
        rows = self.losses.reshape(-1, restarts).argmin(1) + restarts * np.arange(len(self) // restarts)
        return Attempts(**{name: array[rows] for name, array in vars(self).items()})
