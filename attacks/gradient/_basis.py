"""A second moment of one map's gradients that is diagonal in a basis of products of outputs and inputs."""

from abc import ABC, abstractmethod

import numpy as np
from jaxtyping import Float64

from privkit.exposure import Trace


class Basis(ABC):
    """What gradients of one map look like in some basis.

    Attributes:
        energy: second moment of a gradient along each direction, shape [m, d].
    """

    energy: Float64[np.ndarray, "m d"]

    @abstractmethod
    def rotated(self, gradient_md: Float64[np.ndarray, "m d"]) -> Float64[np.ndarray, "m d"]:
        """Return a gradient in this basis."""

    @abstractmethod
    def rows(self, trace: Trace, factor_N: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, "N p"]:
        """Return the gradients of some records in this basis, each times its factor."""
