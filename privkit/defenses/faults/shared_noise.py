"""A seed that all clients have: in a round, all of them draw the same noise."""

import math

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from privkit.defenses.faults._base import AbstractFault, Memory
from privkit.noise import Noise, Purpose, SeededNoise, keyed

_SEED = 0


class SharedNoise(AbstractFault):
    """Noise from a seed and the number of the message, whoever sends it."""

    share: float = Field(default=1.0, gt=0, le=1, description="part of the variance that all clients share")

    def draw(self, noise: Noise, shape: tuple[int, ...], memory: Memory) -> Float64[np.ndarray, "..."]:
        sent = int(memory["sent"][0]) if "sent" in memory else 0
        common = SeededNoise(keyed(_SEED, Purpose.RELEASE, round=sent)).normal(shape)
        return math.sqrt(self.share) * common + math.sqrt(1 - self.share) * noise.normal(shape)

    def remember(self, memory: Memory, drawn_Pd: Float64[np.ndarray, "P d"]) -> Memory:
        return {"sent": memory.get("sent", np.zeros(1, dtype=np.int64)) + 1}
