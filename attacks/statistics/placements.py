"""Placements: where each score falls in the other class. Everything about the AUC follows from them.

The placement of a member is the share of non-members below it, ties counting half; that of a non-member is
the share of members above it. Counted on sorted arrays in O(n log n), and twice the counts are whole numbers,
so that the AUC is a ratio of two exact sums.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class Placements(NamedTuple):
    """The AUC of two classes and the placements that average to it, each in the order of its class."""

    auc: float
    v10_M: Float[np.ndarray, " M"]
    v01_N: Float[np.ndarray, " N"]


def placements(member_M: Float[np.ndarray, " M"], non_member_N: Float[np.ndarray, " N"]) -> Placements:
    """Return ``P(member > non-member) + P(tie) / 2`` over all pairs, and the placements; needs one of each.

    Source: Mann and Whitney (1947); placements as in DeLong et al. (1988), Eq. 3-4.

    >>> placements(np.array([1.0, 0.5]), np.array([0.5, 0.0])).auc
    0.875
    """
    return _placed(member_M, non_member_N, np.sort(member_M), np.sort(non_member_N))


def sorted_placements(member_M: Float[np.ndarray, " M"], non_member_N: Float[np.ndarray, " N"]) -> Placements:
    """Return :func:`placements` of scores in ascending order, for whoever does not mind their order.

    Sorted queries walk through the other class in order, which is several times faster for a million of them.
    """
    return _placed(member_M, non_member_N, member_M, non_member_N)


def _placed(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    sorted_M: Float[np.ndarray, " M"],
    sorted_N: Float[np.ndarray, " N"],
) -> Placements:
    twice_wins_M, twice_losses_N = _twice_below(member_M, sorted_N), _twice_below(non_member_N, sorted_M)
    m, n = len(member_M), len(non_member_N)
    return Placements(
        auc=int(twice_wins_M.sum(dtype=np.int64)) / (2 * m * n),
        v10_M=twice_wins_M / (2 * n),
        v01_N=(2 * m - twice_losses_N) / (2 * m),
    )


def _twice_below(
    scores_K: Float[np.ndarray, " K"], sorted_R: Float[np.ndarray, " R"]
) -> Int[np.ndarray, " K"]:
    """Return, per score, twice the number of reference scores below it plus the number equal to it."""
    below_K = np.searchsorted(sorted_R, scores_K, side="left")
    tied_K = sorted_R[np.minimum(below_K, len(sorted_R) - 1)] == scores_K
    twice_K = 2 * below_K
    if tied_K.any():  # most scores have no twin, and need no second search
        up_to = np.searchsorted(sorted_R, scores_K[tied_K], side="right")
        twice_K[tied_K] += up_to - below_K[tied_K]
    return twice_K
