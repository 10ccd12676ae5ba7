"""A private selection that costs as its Gaussian noise does: top-k of scores with that noise."""

import math

import numpy as np
from jaxtyping import Float64

from accountant.events import GaussianTopK
from privkit.noise import Noise
from privkit.partitions._selection import ROUNDED_UP, AbstractGaussianSelection


class Gaussian(AbstractGaussianSelection):
    """The k coordinates with the largest discriminability plus Gaussian noise, drawn anew in every round.

    A record moves each of d scores by at most H, so all of them together by at most ``H sqrt(d)`` in l2 norm: noise
    of standard deviation ``s`` on each is mu-GDP with ``mu = H sqrt(d) / s``, whatever else moves. Which are the k
    largest is post-processing, so the noise does not depend on k.
    """

    def top_k_of(self, mu: float, *, size: int, dim: int) -> GaussianTopK:
        spread = ROUNDED_UP * self.score_bound * math.sqrt(dim) / mu
        return GaussianTopK(k=size, dim=dim, score_bound=self.score_bound, scale=spread)

    def draw(self, noise: Noise, shape: tuple[int, ...]) -> Float64[np.ndarray, " d"]:
        return noise.normal(shape)
