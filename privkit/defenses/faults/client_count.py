"""The wrong n: the client's number of records where the class's belongs."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses._means import ClassMeans
from privkit.defenses.faults._base import AbstractFault


class ClientCount(AbstractFault):
    """Noise for a mean over all records of the client, on means of classes."""

    def noise_std(self, honest_P: Float64[np.ndarray, " P"], means: ClassMeans) -> Float64[np.ndarray, " P"]:
        return honest_P * means.counts / means.counts.sum()
