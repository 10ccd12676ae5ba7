"""Is noise Gaussian? Other noise of the same variance hides less, and no sum of squares tells it apart."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float
from scipy import special

TOLERANCE = (
    0.02  # of a distribution function; values rounded to a tenth of a standard deviation move it by less
)
LEAST = 4  # coordinates of a vector


def shape_gap(vectors: Iterable[Float[np.ndarray, " _"]]) -> tuple[float, int]:
    r"""Return how far the distribution of coordinates is from that of Gaussian vectors, and of how many coordinates.

    Each vector is divided by its own length, so that its scale, which is another question, does not matter: a
    coordinate u of a random direction in d dimensions has :math:`u^2 \sim \mathrm{Beta}(1/2, (d-1)/2)` and a fair sign.

    Args:
        vectors: noise of one scale each; those of fewer than 4 coordinates, or of length 0, are left out.

    Returns:
        The Kolmogorov-Smirnov distance, in [0, 1], and the number of coordinates; 0 and 0 where all were left out.
    """
    places = [_places(vector) for vector in vectors if len(vector) >= LEAST and vector.any()]
    if not places:
        return 0.0, 0
    sorted_N = np.sort(np.concatenate(places))
    steps_N = np.arange(len(sorted_N) + 1) / len(sorted_N)
    return float(max((steps_N[1:] - sorted_N).max(), (sorted_N - steps_N[:-1]).max())), len(sorted_N)


def shape_p_value(vectors: Iterable[Float[np.ndarray, " _"]]) -> float:
    """Return a p-value of "noise is Gaussian to within 0.02 of its distribution function, of any scale per vector".

    It is too large rather than too small: coordinates of a vector of known length are closer to their distribution than
    independent ones, and the tolerance is taken off the distance before it is compared with Kolmogorov's law.

    Args:
        vectors: as for :func:`shape_gap`.

    >>> rng = np.random.default_rng(0)
    >>> shape_p_value(rng.standard_normal((100, 50))), shape_p_value(rng.choice([-1.0, 1.0], (100, 50))) < 1e-9
    (1.0, True)
    """
    gap, count = shape_gap(vectors)
    return float(special.kolmogorov(count**0.5 * max(0.0, gap - TOLERANCE)))


def _places(vector_d: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return where each coordinate is in its distribution, in [0, 1]."""
    shares_d = np.square(vector_d, dtype=np.float64)
    shares_d = shares_d / shares_d.sum()
    beyond_d = special.betainc((len(vector_d) - 1) / 2, 0.5, 1 - shares_d)
    return np.where(vector_d < 0, beyond_d / 2, 1 - beyond_d / 2)
