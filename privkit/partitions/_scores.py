"""How well each coordinate separates a client's classes: the score that VPP selects by."""

import numpy as np
from jaxtyping import Float64

from privkit.defenses._means import class_means
from privkit.embeddings import Embeddings
from privkit.errors import InputError


def discriminability(
    embeddings: Embeddings, *, stabiliser: float, stabiliser_of_median: float = 0.0
) -> Float64[np.ndarray, " d"]:
    r"""Return the ratio of between-class to within-class variance of each coordinate, at least 0.

    .. math:: S_j = \frac{V^{ter}_j / (C - 1)}{V^{tra}_j / (n - C) + \zeta}

    with C the classes present at the client. Where every class has one record, there is no variance within
    classes and all scores are 0.

    Args:
        embeddings: of one client, not clipped.
        stabiliser: zeta, at least 0.
        stabiliser_of_median: added to zeta, times the median of V^ter; the published code has 1e-3.

    Raises:
        InputError: the client has one class only, so nothing separates classes.

    Source: VPDR, Eqs. 7 and 8.
    """
    means = class_means(embeddings)
    classes, records = len(means.labels), len(embeddings.labels)
    if classes < 2:
        raise InputError(
            f"a client has records of class {means.labels[0]} only, and scores compare classes: give it a second "
            "class, or use partition random or defense igpp."
        )
    if records <= classes:
        return np.zeros(means.vectors.shape[1])
    row = np.searchsorted(means.labels, embeddings.labels)
    within_d = ((embeddings.vectors - means.vectors[row]) ** 2).sum(0)
    grand_d = means.counts @ means.vectors / records
    between_d = means.counts @ (means.vectors - grand_d) ** 2
    zeta = stabiliser + stabiliser_of_median * (np.median(between_d) + 1e-12)
    denominator_d = within_d / (records - classes) + zeta
    numerator_d = between_d / (classes - 1)
    return np.divide(numerator_d, denominator_d, out=np.zeros_like(numerator_d), where=denominator_d > 0)
