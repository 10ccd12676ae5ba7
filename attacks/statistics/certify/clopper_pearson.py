"""Epsilon from the rates at one threshold, whatever the mechanism."""

import math

from accountant import check
from attacks.statistics.certify.certificate import Certificate
from attacks.statistics.confusion import Confusion

METHOD = "Clopper-Pearson"
INDEPENDENT_TRIALS = "trials are independent: separate runs, or noise that is independent between canaries"
FIXED_THRESHOLD = "the threshold and the direction were fixed without looking at these scores"


def epsilon_clopper_pearson(
    point: Confusion, *, delta: float, level: float = 0.95, comparisons: int = 1
) -> Certificate:
    r"""Return the epsilon that the rates at one threshold rule out.

    .. math:: \hat\epsilon = \max\left(0, \ln\frac{TPR_{lo} - \delta}{FPR_{up}},
              \ln\frac{TNR_{lo} - \delta}{FNR_{up}}\right)

    One confidence region for (TPR, FPR) covers both logarithms, so using the better one needs no correction.
    Trying several thresholds or the flipped score does: give ``comparisons``.

    Args:
        point: counts at the threshold.
        delta: in [0, 1).
        level: probability that the limit holds, in (0, 1); each rate gets half of the rest.
        comparisons: how many thresholds, directions or slices were tried (Bonferroni), at least 1.

    Returns:
        Certificate without mu. Even N of N without an error certify at most .81, 3.28, 5.60, 7.90 for
        N = 10, 100, 1000, 10000 (delta 0).

    Guarantees:
        Below the true epsilon with probability at least ``level``, for any (epsilon, delta)-DP mechanism.

    Source: Jagielski, Ullman and Oprea (2020), Section 3; both logarithms: Nasr et al. (2021).

    >>> point = Confusion(true_positives=90, n_members=100, false_positives=5, n_non_members=100,
    ...                   threshold_source="the claim")
    >>> round(epsilon_clopper_pearson(point, delta=1e-5).epsilon_low, 6)
    1.987962
    """
    check.open_unit(level=level)
    check.count(comparisons=comparisons)
    if not 0 <= delta < 1:
        raise ValueError(f"delta={delta} must be at least 0 and below 1.")
    tpr_low, fpr_up = point.worst_rates(alpha=(1 - level) / comparisons)
    tnr_low, fnr_up = 1 - fpr_up, 1 - tpr_low
    return Certificate(
        method=METHOD,
        epsilon_low=max(0.0, _log_ratio(tpr_low - delta, fpr_up), _log_ratio(tnr_low - delta, fnr_up)),
        mu_low=None,
        delta=delta,
        level=level,
        assumptions=(INDEPENDENT_TRIALS, FIXED_THRESHOLD, f"{comparisons} comparison(s) corrected for"),
        threshold_source=point.threshold_source,
        evidence=str(point),
    )


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0 else 0.0
