"""Less noise than is claimed."""

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from privkit.defenses._means import ClassMeans
from privkit.defenses.faults._base import AbstractFault


class LowNoise(AbstractFault):
    """Noise that is too small everywhere by one factor."""

    factor: float = Field(
        default=0.5, gt=0, description="drawn noise / claimed noise, both standard deviations"
    )

    def noise_std(self, honest_P: Float64[np.ndarray, " P"], means: ClassMeans) -> Float64[np.ndarray, " P"]:
        return self.factor * honest_P
