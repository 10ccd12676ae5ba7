"""Noise that is drawn once and used in every round: differences of rounds are free of it."""

import math

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from privkit.defenses.faults._base import AbstractFault, Memory
from privkit.noise import Noise


class ReusedNoise(AbstractFault):
    """Later rounds repeat the noise of the first, all of it or a part of its variance."""

    share: float = Field(default=1.0, gt=0, le=1, description="part of the variance that is not drawn anew")

    def draw(self, noise: Noise, shape: tuple[int, ...], memory: Memory) -> Float64[np.ndarray, "..."]:
        fresh = noise.normal(shape)
        if "noise" not in memory:
            return fresh
        return math.sqrt(self.share) * memory["noise"] + math.sqrt(1 - self.share) * fresh

    def remember(self, memory: Memory, drawn_Pd: Float64[np.ndarray, "P d"]) -> Memory:
        return {"noise": memory.get("noise", drawn_Pd)}
