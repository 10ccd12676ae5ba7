"""Power of the tests against a ceiling, when the truth is known."""

import math

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from accountant import check
from attacks.statistics.binomial import lower_limits, upper_limits
from attacks.statistics.ceiling import TradeOffCurve

_FEW_PAIRS = 20  # expected disagreeing pairs below which the AUC is far from normal
_LOGITS = np.linspace(0, 12, 4097)
_WIDE = 10  # standard deviations of a count that are summed over; the rest is below 1e-15


def auc_power(
    *, auc: float, ceiling: float, n_members: int, n_non_members: int, significance: float
) -> float:
    """Return the power of :func:`attacks.statistics.ceiling.auc_above`, for normal scores of equal variance.

    Args:
        auc: the true AUC, in [0.5, 1].
        ceiling: what the claim allows, in (0, 1).
        n_members: independent members, at least 2.
        n_non_members: independent non-members, at least 2.
        significance: level of the test, in (0, 1).

    Returns:
        Probability in [0, 1], to about 0.05: the AUC that would just be significant, and the chance of more,
        normal on the logit scale with the exact variance of the AUC. Where fewer than twenty pairs are
        expected to disagree, 1 if full separation would be significant and 0 if not.

    Source: variance as in Bamber (1975), Eq. 2.
    """
    check.open_unit(ceiling=ceiling, significance=significance)
    if min(n_members, n_non_members) < 2 or not 0.5 <= auc <= 1:
        raise ValueError(
            f"auc={auc}, n_members={n_members}, n_non_members={n_non_members}: "
            "the AUC must be 0.5 to 1, with at least 2 members and 2 non-members."
        )
    pairs = n_members * n_non_members
    if pairs * (1 - auc) < _FEW_PAIRS:
        separated = 2 * ceiling ** (pairs / (n_members + n_non_members))
        return float(separated <= significance)
    logit_K = special.logit(ceiling) + _LOGITS
    excess_K = _LOGITS / _logit_error(special.expit(logit_K), n_members, n_non_members)
    critical = -special.ndtri(significance)
    first = int(np.argmax(excess_K > critical))
    if excess_K[first] <= critical:
        return 0.0
    needed = np.interp(critical, excess_K[first - 1 : first + 1], logit_K[first - 1 : first + 1])
    error = float(_logit_error(np.array([auc]), n_members, n_non_members)[0])
    return float(special.ndtr((special.logit(auc) - needed) / error))


def tpr_power(
    *,
    tpr: float,
    fpr: float,
    curve: TradeOffCurve,
    n_members: int,
    n_non_members: int,
    significance: float,
) -> float:
    """Return the exact power of :func:`attacks.statistics.ceiling.tpr_above` at a fixed threshold.

    Args:
        tpr: true rate at the threshold, in [0, 1].
        fpr: true rate at the threshold, in [0, 1].
        curve: what the claim allows.
        n_members: independent members, at least 1.
        n_non_members: independent non-members, at least 1.
        significance: level of the test, in (0, 1).

    Returns:
        Probability in [0, 1]: a sum over the false-positive counts of the chance of enough true positives.
    """
    check.closed_unit(tpr=tpr, fpr=fpr)
    check.open_unit(significance=significance)
    check.count(n_members=n_members, n_non_members=n_non_members)
    false_K = _likely_counts(n_non_members, fpr)
    probability_K = -np.diff(_at_least(false_K, n_non_members, fpr), append=0.0)
    fpr_up_K = upper_limits(false_K, n_non_members, alpha=significance / 2)
    allowed_K = np.array([float(curve.tpr(float(rate))) for rate in fpr_up_K])
    needed_K = _true_positives_needed(allowed_K, n_members, alpha=significance / 2)
    enough_K = _at_least(needed_K, n_members, tpr)
    return float(min(1.0, probability_K @ enough_K))


def _at_least(count_K: Int[np.ndarray, " K"], trials: int, rate: float) -> Float[np.ndarray, " K"]:
    """Return the probability of at least so many successes; 1 for none, 0 for more than there are trials."""
    k = np.clip(count_K, 1, trials)
    # the beta function takes counts beyond 2 ** 31, where the binomial one overflows
    tail_K = special.betainc(k, trials - k + 1, rate)
    return np.where(count_K > trials, 0.0, np.where(count_K == 0, 1.0, tail_K))


def _likely_counts(trials: int, rate: float) -> Int[np.ndarray, " K"]:
    """Return the consecutive counts that a binomial reaches with any probability worth the name."""
    mean, spread = trials * rate, _WIDE * math.sqrt(trials * rate * (1 - rate)) + 4 * _WIDE
    return np.arange(max(0, math.floor(mean - spread)), min(trials, math.ceil(mean + spread)) + 1)


def _true_positives_needed(
    allowed_K: Float[np.ndarray, " K"], n_members: int, *, alpha: float
) -> Int[np.ndarray, " K"]:
    """Return the fewest true positives whose lower limit exceeds each rate; M + 1 where none does."""
    low_K = np.zeros(len(allowed_K), dtype=np.int64)
    high_K = np.full(len(allowed_K), n_members + 1)
    while (high_K - low_K).max() > 1:
        middle_K = (low_K + high_K) // 2
        exceeds_K = lower_limits(middle_K, n_members, alpha=alpha) > allowed_K
        low_K, high_K = np.where(exceeds_K, low_K, middle_K), np.where(exceeds_K, middle_K, high_K)
    return high_K


def _logit_error(auc_K: Float[np.ndarray, " K"], m: int, n: int) -> Float[np.ndarray, " K"]:
    """Return the standard error of the logit of the AUC of M and N normal scores of equal variance."""
    # two members above one non-member, or one member above two: two normals correlated by 1/2
    both_K = auc_K - 2 * special.owens_t(special.ndtri(auc_K), 1 / math.sqrt(3))
    square_K = (auc_K * (1 - auc_K) + (m + n - 2) * (both_K - auc_K * auc_K)) / (m * n)
    return np.sqrt(square_K) / (auc_K * (1 - auc_K))
