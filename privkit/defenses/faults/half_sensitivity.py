"""A sensitivity of R/n: that of adding a record to a sum, where the claim is about replacing one."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses._means import ClassMeans
from privkit.defenses.faults._base import AbstractFault


class HalfSensitivity(AbstractFault):
    """Noise ``sigma R/n`` in place of ``sigma 2R/n``."""

    def noise_std(self, honest_P: Float64[np.ndarray, " P"], means: ClassMeans) -> Float64[np.ndarray, " P"]:
        return honest_P / 2
