"""No clipping: a record moves its class's mean as far as it is long."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses.faults._base import AbstractFault


class NoClip(AbstractFault):
    """Records are averaged as they are."""

    def clip(self, vectors_Nd: np.ndarray, *, norm: float) -> Float64[np.ndarray, "N d"]:
        return np.asarray(vectors_Nd, dtype=np.float64)
