"""The private selection with the least noise here: top-k of scores with Gumbel noise."""

import math
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from accountant.events import GumbelTopK
from accountant.normal import log_cdf
from privkit.noise import Noise
from privkit.partitions._selection import ROUNDED_UP, AbstractGaussianSelection

_SMALLEST = float(np.finfo(np.float64).tiny)


class Gumbel(AbstractGaussianSelection):
    """The k coordinates with the largest discriminability plus Gumbel noise, drawn anew in every round.

    The k largest, in their order, are k picks of the exponential mechanism without replacement. A record moves two
    scores against each other by at most 2H, so each pick has a privacy loss of range ``eta = 2H / b`` at noise scale
    ``b``, and is mu-GDP with ``mu = 2 Phi^-1(1 / (1 + e^(-eta/2)))``, whatever was picked before; k picks are
    ``sqrt(k) mu``-GDP. Publishing the set without its order is post-processing.

    Source: Durfee and Rogers (2019), Lemma 4.2; Dong, Durfee and Rogers (2020), for the range
    """

    citation: ClassVar[str] = "durfee2019"

    def top_k_of(self, mu: float, *, size: int, dim: int) -> GumbelTopK:
        spread = ROUNDED_UP * 2 * self.score_bound / _range_from_mu(mu / math.sqrt(size))
        return GumbelTopK(k=size, dim=dim, score_bound=self.score_bound, scale=spread)

    def draw(self, noise: Noise, shape: tuple[int, ...]) -> Float64[np.ndarray, " d"]:
        # the size of a Laplace number is exponential, and minus the logarithm of that is Gumbel
        return -np.log(np.maximum(np.abs(noise.laplace(shape)), _SMALLEST))


def _range_from_mu(mu: float) -> float:
    """Return the range eta of a pick that is mu-GDP, the inverse of :func:`accountant.bounded_range.mu`."""
    half = mu / 2
    if half < 1:  # there, the difference of the logarithms would lose digits
        return 4 * math.atanh(math.erf(half / math.sqrt(2)))
    return 2 * (log_cdf(half) - log_cdf(-half))
