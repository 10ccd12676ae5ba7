"""What a fault is: one step of clipped, averaged, noisy class means that is not as it is claimed."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64

from accountant.contract import Contract
from privkit.clip import clip_to_ball
from privkit.defenses._means import ClassMeans
from privkit.noise import Noise
from privkit.plug import Plugin

Memory = Mapping[str, np.ndarray]


class AbstractFault(Plugin):
    """Every step as it should be; a fault replaces one of them."""

    def contract(self, honest: Contract) -> Contract:
        """Return what is claimed of the release."""
        return honest

    @property
    def sends_counts(self) -> bool:
        """Return whether record counts leave with the means."""
        return True

    def clip(self, vectors_Nd: np.ndarray, *, norm: float) -> Float64[np.ndarray, "N d"]:
        """Return the records as they are averaged."""
        return clip_to_ball(vectors_Nd, norm=norm)

    def noise_std(self, honest_P: Float64[np.ndarray, " P"], means: ClassMeans) -> Float64[np.ndarray, " P"]:
        """Return the standard deviation of the noise on each row, given what it should be."""
        return honest_P

    def draw(self, noise: Noise, shape: tuple[int, ...], memory: Memory) -> Float64[np.ndarray, "..."]:
        """Return noise of standard deviation 1, given what was remembered of earlier messages."""
        return noise.normal(shape)

    def remember(self, memory: Memory, drawn_Pd: Float64[np.ndarray, "P d"]) -> Memory:
        """Return what the next message may read, given the noise of this one, at standard deviation 1."""
        return {}
