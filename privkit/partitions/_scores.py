"""How well each coordinate separates a client's classes: the score that VPP selects by."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float64

from privkit.defenses._means import Groups, refuse_no_records
from privkit.embeddings import Embeddings


def discriminability(
    embeddings: Embeddings, *, stabiliser: float, stabiliser_of_median: float = 0.0
) -> Float64[np.ndarray, " d"]:
    r"""Return the ratio of between-class to within-class variance of each coordinate, finite and at least 0.

    .. math:: S_j = \frac{V^{ter}_j / (C - 1)}{V^{tra}_j / (n - C) + \zeta}

    with C the classes present at the client. Where there is one class only there is nothing to separate, and where
    every class has one record there is no variance within classes: all scores are 0 then, so a private selection
    chooses by its noise alone. Coordinates beyond 1 are scaled by a power of two first, so that every finite
    record has a score; one that is too large for a float is the largest float.

    Args:
        embeddings: of one client, not clipped.
        stabiliser: zeta, at least 0.
        stabiliser_of_median: added to zeta, times the median of V^ter; the published code has 1e-3.

    Source: VPDR, Eqs. 7 and 8
    """
    found = variances(embeddings)
    records = len(embeddings.labels)
    if found.classes < 2 or records <= found.classes:
        return np.zeros(len(found.within))
    with np.errstate(over="ignore"):
        zeta = float(stabiliser)
        if stabiliser_of_median:  # else 0 times what may be infinite
            between_d = np.ldexp(found.between, 2 * found.exponents)
            zeta += stabiliser_of_median * (float(np.median(between_d)) + 1e-12)
        zeta_d, stabilised = np.ldexp(zeta, -2 * found.exponents), zeta > 0
        return _ratio(
            found.between / (found.classes - 1), found.within / (records - found.classes), zeta_d, stabilised
        )


class Variances(NamedTuple):
    """Sums of squares of each coordinate, times ``4 ** -exponents``.

    Attributes:
        between: of class means around their mean, weighted by records, shape [d].
        within: of records around the mean of their class, shape [d].
        exponents: 0 but where squares would be too large for a float, shape [d].
        classes: that are present.
    """

    between: Float64[np.ndarray, " d"]
    within: Float64[np.ndarray, " d"]
    exponents: np.ndarray
    classes: int


_KNOWN: WeakKeyDictionary[Embeddings, Variances] = WeakKeyDictionary()


def variances(embeddings: Embeddings) -> Variances:
    """Return the variances of some embeddings; they are computed once, whoever asks again."""
    if embeddings not in _KNOWN:
        exponent_d = np.zeros(embeddings.vectors.shape[1], dtype=np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            found = _variances(embeddings, exponent_d)
        if not all(np.isfinite(v_d).all() for v_d in (found.between, found.within)):
            largest_d = np.abs(embeddings.vectors).max(axis=0, initial=0.0)
            found = _variances(embeddings, np.maximum(np.frexp(largest_d)[1], 0))
        _KNOWN[embeddings] = found
    return _KNOWN[embeddings]


def _variances(embeddings: Embeddings, exponent_d: np.ndarray) -> Variances:
    """Return the variances, some records at a time.

    Source: Chan, Golub and LeVeque (1983), "Algorithms for computing the sample variance", Eq. 2.1
    """
    refuse_no_records(embeddings)
    groups, scaled = Groups.of(embeddings.labels), exponent_d.any()
    means_Pd, seen_P = np.zeros((len(groups.labels), len(exponent_d))), np.zeros(len(groups.labels))
    within_d = np.zeros(len(exponent_d))
    for p, rows in groups.rows():
        z_nd = embeddings.vectors[rows]
        if scaled:
            z_nd = np.ldexp(z_nd, -exponent_d)
        seen, size = seen_P[p], len(z_nd)
        mean_d, share = z_nd.sum(0) / size, size / (seen + size)
        away_nd, moved_d = z_nd - mean_d, mean_d - means_Pd[p]
        within_d += np.einsum("nd,nd->d", away_nd, away_nd) + seen * share * moved_d**2
        means_Pd[p] += share * moved_d
        seen_P[p] += size
    grand_d = groups.counts @ means_Pd / len(embeddings.labels)
    between_d = groups.counts @ (means_Pd - grand_d) ** 2
    return Variances(between_d, within_d, exponent_d, len(groups.labels))


def _ratio(
    between_d: np.ndarray, within_d: np.ndarray, zeta_d: np.ndarray, stabilised: bool
) -> Float64[np.ndarray, " d"]:
    """Return ``between / (within + zeta)``, whose zeta may be too small for a float beside the others; 0 / 0 is 0."""
    total_d = within_d + zeta_d
    without_d = np.where((between_d > 0) & stabilised, np.inf, 0.0)
    ratio_d = np.divide(between_d, total_d, out=without_d, where=total_d > 0)
    return np.minimum(ratio_d, np.finfo(np.float64).max)
