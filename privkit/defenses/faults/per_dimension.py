"""Noise shared out over coordinates: its whole length is what each coordinate should have."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses._means import ClassMeans
from privkit.defenses.faults._base import AbstractFault


class PerDimension(AbstractFault):
    """Noise divided by the square root of the number of coordinates."""

    def noise_std(self, honest_P: Float64[np.ndarray, " P"], means: ClassMeans) -> Float64[np.ndarray, " P"]:
        return honest_P / np.sqrt(means.vectors.shape[1])
