"""How well each coordinate separates a client's classes: the score that VPP selects by."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses._means import class_means
from privkit.embeddings import Embeddings
from privkit.errors import InputError


def discriminability(
    embeddings: Embeddings, *, stabiliser: float, stabiliser_of_median: float = 0.0
) -> Float64[np.ndarray, " d"]:
    r"""Return the ratio of between-class to within-class variance of each coordinate, finite and at least 0.

    .. math:: S_j = \frac{V^{ter}_j / (C - 1)}{V^{tra}_j / (n - C) + \zeta}

    with C the classes present at the client. Where every class has one record, there is no variance within
    classes and all scores are 0. Coordinates beyond 1 are scaled by a power of two first, so that every finite
    record has a score; one that is too large for a float is the largest float.

    Args:
        embeddings: of one client, not clipped.
        stabiliser: zeta, at least 0.
        stabiliser_of_median: added to zeta, times the median of V^ter; the published code has 1e-3.

    Raises:
        InputError: the client has one class only, so nothing separates classes.

    Source: VPDR, Eqs. 7 and 8.
    """
    exponent_d = np.maximum(np.frexp(np.abs(embeddings.vectors).max(axis=0, initial=0.0))[1], 0)
    scaled = embeddings.with_vectors(np.ldexp(embeddings.vectors, -exponent_d))
    means = class_means(scaled)
    classes, records = len(means.labels), len(embeddings.labels)
    if classes < 2:
        raise InputError(
            f"a client has records of class {means.labels[0]} only, and scores compare classes: give it a second "
            "class, or use partition random or defense igpp."
        )
    if records <= classes:
        return np.zeros(means.vectors.shape[1])
    row = np.searchsorted(means.labels, embeddings.labels)
    within_d = ((scaled.vectors - means.vectors[row]) ** 2).sum(0)
    grand_d = means.counts @ means.vectors / records
    between_d = means.counts @ (means.vectors - grand_d) ** 2
    with np.errstate(over="ignore"):
        zeta = float(stabiliser)
        if stabiliser_of_median:  # else 0 times what may be infinite
            zeta += stabiliser_of_median * (float(np.median(np.ldexp(between_d, 2 * exponent_d))) + 1e-12)
        zeta_d, stabilised = np.ldexp(zeta, -2 * exponent_d), zeta > 0
        return _ratio(between_d / (classes - 1), within_d / (records - classes), zeta_d, stabilised)


def _ratio(
    between_d: np.ndarray, within_d: np.ndarray, zeta_d: np.ndarray, stabilised: bool
) -> Float64[np.ndarray, " d"]:
    """Return ``between / (within + zeta)``, whose zeta may be too small for a float beside the others; 0 / 0 is 0."""
    total_d = within_d + zeta_d
    without_d = np.where((between_d > 0) & stabilised, np.inf, 0.0)
    ratio_d = np.divide(between_d, total_d, out=without_d, where=total_d > 0)
    return np.minimum(ratio_d, np.finfo(np.float64).max)
