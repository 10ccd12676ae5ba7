"""The ROC with all of its points: no interpolation, no dropped ties, both corners."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from attacks.statistics.estimate import empty_class
from attacks.statistics.scores import as_scores


class Roc(NamedTuple):
    """Counts at every threshold, from "nobody is a member" to "everybody is".

    ``threshold_K[k]`` flags the scores at or above it; the first is infinite and flags nobody.
    """

    threshold_K: Float[np.ndarray, " K"]
    true_positives_K: Int[np.ndarray, " K"]
    false_positives_K: Int[np.ndarray, " K"]


def roc(members: ArrayLike, non_members: ArrayLike) -> Roc:
    """Return one point per distinct score, and (0, 0) before them; the last is (M, N).

    Collinear points are kept: dropping them changes the TPR at a given FPR (scikit-learn's
    ``drop_intermediate=True`` does).

    Raises:
        ValueError: a class is empty, or a score is not finite.

    >>> curve = roc([2, 1], [1, 0])
    >>> curve.true_positives_K.tolist(), curve.false_positives_K.tolist()
    ([0, 1, 2, 2], [0, 0, 1, 2])
    """
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    reason = empty_class(len(member_M), len(non_member_N))
    if reason:
        raise ValueError(f"there is no ROC with {reason}; give scores of both classes.")
    threshold_K = np.unique(np.concatenate([member_M, non_member_N]))[::-1]
    return Roc(
        threshold_K=np.concatenate([[np.inf], threshold_K]),
        true_positives_K=_at_least(member_M, threshold_K),
        false_positives_K=_at_least(non_member_N, threshold_K),
    )


def _at_least(
    scores_S: Float[np.ndarray, " S"], descending_T: Float[np.ndarray, " T"]
) -> Int[np.ndarray, " K"]:
    """Return 0, then how many scores lie at or above each threshold."""
    below_T = np.searchsorted(np.sort(scores_S), descending_T, side="left")
    return np.concatenate([[0], len(scores_S) - below_T])
