"""Membership advantage, TPR - FPR: at its maximum, and at a threshold fixed elsewhere."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics import hypergeometric, smirnov
from attacks.statistics.binomial import lower_limits, upper_limits
from attacks.statistics.confusion import Confusion, confusion
from attacks.statistics.estimate import Estimate, empty_class
from attacks.statistics.roc import roc
from attacks.statistics.scores import as_scores


def max_advantage(members: ArrayLike, non_members: ArrayLike) -> Estimate:
    """Return ``max_t (TPR - FPR)``, which is biased up, next to its mean and its p-value without any skill.

    There is no interval: the threshold was chosen by the scores themselves. Use :func:`held_out_advantage`
    for an unbiased value.

    Returns:
        Estimate in [0, 1]; no value, with the reason, if a class is empty.

    Source: Yeom et al. (2018) for the advantage; Smirnov (1944) for its law.

    >>> found = max_advantage([3, 4, 5, 6], [1, 2, 3.5, 4.5])
    >>> found.value, round(found.null, 3), round(found.p_value, 3)
    (0.5, 0.332, 0.4)
    """
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    m, n = len(member_M), len(non_member_N)
    reason = empty_class(m, n)
    if reason:
        return Estimate.missing(reason, n_members=m, n_non_members=n)
    curve = roc(member_M, non_member_N)
    excess = int((n * curve.true_positives_K - m * curve.false_positives_K).max())
    p_value, how = smirnov.p_value(excess, m, n)
    return Estimate(
        value=excess / (m * n),
        kind="maximum over thresholds, biased up: no interval",
        n_members=m,
        n_non_members=n,
        null=smirnov.null_mean(m, n),
        p_value=p_value,
        note=f"p-value {how}, one-sided Smirnov",
    )


def held_out_advantage(
    members: ArrayLike, non_members: ArrayLike, *, seed: int, level: float = 0.95
) -> Estimate:
    """Return ``TPR - FPR`` on one half of the scores at the threshold that is best on the other half.

    Args:
        members: scores of members, at least 2.
        non_members: scores of non-members, at least 2.
        seed: of the split; the same seed gives the same halves.
        level: confidence level of the interval: Clopper-Pearson for each rate, half of the error each.

    Returns:
        Estimate in [-1, 1], unbiased for the threshold chosen, no-skill value 0; counts are those of the
        evaluated half; the p-value is Fisher's exact one. No value, with the reason, below 2 per class.
    """
    check.open_unit(level=level)
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    m, n = len(member_M), len(non_member_N)
    if min(m, n) < 2:
        reason = empty_class(m, n) or "a class with a single record cannot be halved"
        return Estimate.missing(reason, n_members=m, n_non_members=n, null=0.0)
    rng = np.random.default_rng(seed)
    member_choose, member_rest = _halves(member_M, rng)
    non_member_choose, non_member_rest = _halves(non_member_N, rng)
    point = confusion(
        member_rest,
        non_member_rest,
        threshold=_best_threshold(member_choose, non_member_choose),
        threshold_source=f"best on the other half, seed {seed}",
    )
    low, high = _difference(point, alpha=1 - level)
    return Estimate(
        value=point.tpr - point.fpr,
        low=low,
        high=high,
        level=level,
        kind="Clopper-Pearson per rate, two-sided, threshold from the other half",
        n_members=point.n_members,
        n_non_members=point.n_non_members,
        null=0.0,
        p_value=_fisher(point),
        note=f"{point}, threshold {point.threshold_source}",
    )


def _halves(
    scores_K: Float[np.ndarray, " K"], rng: np.random.Generator
) -> tuple[Float[np.ndarray, " A"], Float[np.ndarray, " B"]]:
    """Return two halves in random order; an odd one out goes to the second."""
    shuffled = rng.permutation(scores_K)
    return shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]


def _best_threshold(member_M: Float[np.ndarray, " M"], non_member_N: Float[np.ndarray, " N"]) -> float:
    """Return the highest threshold at which TPR - FPR is largest; infinite when no threshold helps."""
    curve = roc(member_M, non_member_N)
    gain = len(non_member_N) * curve.true_positives_K - len(member_M) * curve.false_positives_K
    return float(curve.threshold_K[int(np.argmax(gain))])


def _difference(point: Confusion, *, alpha: float) -> tuple[float, float]:
    """Return limits for TPR - FPR; each of the four one-sided limits fails with probability alpha/4."""
    hits, false = np.array([point.true_positives]), np.array([point.false_positives])
    m, n = point.n_members, point.n_non_members
    low = lower_limits(hits, m, alpha=alpha / 4) - upper_limits(false, n, alpha=alpha / 4)
    high = upper_limits(hits, m, alpha=alpha / 4) - lower_limits(false, n, alpha=alpha / 4)
    return float(low[0]), float(high[0])


def _fisher(point: Confusion) -> float:
    """Return the probability of no more false positives among as many positives, were all records alike."""
    return hypergeometric.probability_at_most(
        point.false_positives,
        draws=point.true_positives + point.false_positives,
        good=point.n_non_members,
        bad=point.n_members,
    )
