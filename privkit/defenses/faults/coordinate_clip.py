"""Clipping in the largest-coordinate norm where the claim is about the l2 norm."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses.faults._base import AbstractFault


class CoordinateClip(AbstractFault):
    """Every coordinate is clipped to [-R, R], so a record may be ``sqrt(d) R`` long."""

    def clip(self, vectors_Nd: np.ndarray, *, norm: float) -> Float64[np.ndarray, "N d"]:
        return np.clip(np.asarray(vectors_Nd, dtype=np.float64), -norm, norm)
