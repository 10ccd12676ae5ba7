"""Was noise drawn anew every time? Exact tests on residuals that should be independent of each other."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

_COORDINATES = 4096  # of each vector, for the comparison of all pairs: more make it slow and no surer


class Alike(NamedTuple):
    """The two vectors that are most alike.

    Attributes:
        first, second: their numbers.
        correlation: their cosine, in [-1, 1].
        p_value: of "no pair is dependent", corrected for the number of pairs.
    """

    first: int
    second: int
    correlation: float
    p_value: float


def common_share(groups: Sequence[Float[np.ndarray, "_ _"]]) -> float:
    """Return the correlation of two vectors of a group, averaged over groups: the share of variance in common, if >= 0.

    Args:
        groups: vectors of a group are rows; at least one group has two rows.
    """
    between, within, dof, left = _sums_of_squares(groups)
    common, own = between / dof, within / left
    size = 1 + left / dof
    return float((common - own) / (common + (size - 1) * own))


def common_p_value(groups: Sequence[Float[np.ndarray, "_ _"]]) -> float:
    r"""Return the two-sided p-value of "the vectors of each group are independent".

    Exact for Gaussian vectors with independent coordinates of one variance, whatever it is: over each group of K
    vectors, ``K mean^2`` and the squares around the mean are independent chi-squares with D and (K - 1) D degrees of
    freedom. A common part makes the first one too large, noise that cancels over the group too small.

    Args:
        groups: vectors of a group are rows; groups of one row say nothing.

    Raises:
        ValueError: no group has two rows of at least one coordinate.

    Source: Fisher (1925), "Statistical methods for research workers", ch. VII (analysis of variance)

    >>> rng = np.random.default_rng(0)
    >>> common = rng.standard_normal(500)
    >>> apart, alike = rng.standard_normal((2, 500)), common + rng.standard_normal((2, 500))
    >>> common_p_value([apart]) > 0.01, common_p_value([alike]) < 1e-9
    (True, True)
    """
    between, within, dof, left = _sums_of_squares(groups)
    whole = between + within
    if whole == 0:
        return 0.0  # no noise at all is the same noise
    # from the smaller share, so that no digit is lost where all or nothing is shared
    above = special.betainc(left / 2, dof / 2, within / whole)
    below = special.betainc(dof / 2, left / 2, between / whole)
    return float(min(1.0, 2 * min(above, below)))


def most_alike(vectors: Sequence[Float[np.ndarray, " _"]]) -> Alike:
    r"""Return the two of some vectors that are most alike, or most opposed, with an exact p-value.

    The cosine r of independent Gaussian vectors with D independent coordinates of one variance has
    ``r^2 ~ Beta(1/2, (D - 1)/2)``; the smallest p-value of all pairs is multiplied by their number.

    Args:
        vectors: at least two, of at least two coordinates. Of all, only as many coordinates are compared as the
            shortest has.

    >>> found = most_alike(list(np.random.default_rng(0).standard_normal((5, 300))))
    >>> found.p_value > 0.01
    True
    """
    shortest = min((len(vector) for vector in vectors), default=0)
    if len(vectors) < 2 or shortest < 2:
        raise ValueError(f"{len(vectors)} vectors of {shortest} coordinates: give at least 2 of at least 2.")
    dim = min(shortest, _COORDINATES)
    x_RD = np.array([vector[:dim] for vector in vectors], dtype=np.float64)
    length_R1 = np.linalg.norm(x_RD, axis=1, keepdims=True)
    unit_RD = np.divide(x_RD, length_R1, out=np.zeros_like(x_RD), where=length_R1 > 0)
    cosine_RR = unit_RD @ unit_RD.T
    np.fill_diagonal(cosine_RR, 0.0)
    first, second = np.unravel_index(int(np.abs(cosine_RR).argmax()), cosine_RR.shape)
    pair = cosine_RR[first, second]
    sign = 1.0 if pair >= 0 else -1.0
    # 1 - r^2 from the distance of the two, which is exact where they are equal
    apart = float(np.sum((unit_RD[first] - sign * unit_RD[second]) ** 2))
    unexplained = min(1.0, apart * (1 - apart / 4))
    single = float(special.betainc((dim - 1) / 2, 0.5, unexplained))
    pairs = len(vectors) * (len(vectors) - 1) // 2
    return Alike(int(min(first, second)), int(max(first, second)), float(pair), min(1.0, pairs * single))


def _sums_of_squares(groups: Sequence[Float[np.ndarray, "_ _"]]) -> tuple[float, float, float, float]:
    """Return the squares between and around means, and their degrees of freedom."""
    between = within = dof = left = 0.0
    for x_KD in groups:
        size, dim = x_KD.shape
        if size < 2:
            continue
        mean_D = x_KD.mean(0)
        between += size * float(mean_D @ mean_D)
        within += float(np.square(x_KD - mean_D).sum())
        dof += dim
        left += (size - 1) * dim
    if not dof:
        raise ValueError("no group has two vectors; give at least one that has.")
    return between, within, dof, left
