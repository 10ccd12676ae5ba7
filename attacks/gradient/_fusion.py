"""One score of several: over the maps of an upload, or over the rounds of a record."""

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64

Rule = Literal["max", "mean", "top", "min", "last"]
"""``top`` is the mean of the largest few; ``last`` is the last that says anything."""


def fused(
    scores_KN: Float64[np.ndarray, "K N"],
    says_KN: Bool[np.ndarray, "K N"],
    *,
    rule: Rule,
    top: int,
) -> Float64[np.ndarray, " N"]:
    """Return one score per candidate of those that say anything; 0 where none does.

    Args:
        scores_KN: of K maps or rounds.
        says_KN: which of them hold information about a candidate.
        rule: how they are put together.
        top: of how many the mean is taken under ``top``, at least 1.
    """
    scores_N = np.zeros(scores_KN.shape[1])
    some_N = says_KN.any(0)
    if not some_N.any():
        return scores_N
    scores_KM, says_KM = scores_KN[:, some_N], says_KN[:, some_N]
    ordered_KM = -np.sort(-np.where(says_KM, scores_KM, -np.inf), axis=0)
    counts_M = says_KM.sum(0)
    if rule == "last":
        places_M = len(scores_KM) - 1 - says_KM[::-1].argmax(0)
        scores_N[some_N] = scores_KM[places_M, np.arange(scores_KM.shape[1])]
    elif rule == "min":
        scores_N[some_N] = ordered_KM[counts_M - 1, np.arange(len(counts_M))]
    else:
        used_M = np.minimum(counts_M, {"max": 1, "top": top, "mean": len(scores_KM)}[rule])
        kept_KM = np.arange(len(scores_KM))[:, None] < used_M
        scores_N[some_N] = np.where(kept_KM, ordered_KM, 0.0).sum(0) / used_M
    return scores_N
