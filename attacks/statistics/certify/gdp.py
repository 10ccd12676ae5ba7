"""Epsilon from the rates at one threshold, for a mechanism whose trade-off curve is Gaussian."""

from scipy import special

from accountant import check
from attacks.statistics.certify.certificate import Certificate, epsilon_or_zero
from attacks.statistics.certify.clopper_pearson import FIXED_THRESHOLD, INDEPENDENT_TRIALS
from attacks.statistics.confusion import Confusion

METHOD = "Gaussian DP with Clopper-Pearson"
GAUSSIAN_CURVE = "the mechanism's trade-off curve is Gaussian: this refutes mu-GDP, not (epsilon, delta)-DP"


def epsilon_gdp(point: Confusion, *, delta: float, level: float = 0.95, comparisons: int = 1) -> Certificate:
    r"""Return the mu, and its epsilon, that the rates at one threshold rule out.

    .. math:: \hat\mu = \max(0, \Phi^{-1}(TPR_{lo}) - \Phi^{-1}(FPR_{up}))

    Args:
        point: counts at the threshold; ``mu / 2`` of the claim is close to the best one.
        delta: in (0, 1).
        level: probability that the limit holds, in (0, 1); each rate gets half of the rest.
        comparisons: how many thresholds, directions or slices were tried (Bonferroni), at least 1.

    Guarantees:
        ``mu_low`` is below the true mu with probability at least ``level``, for any mu-GDP mechanism;
        ``epsilon_low`` is its epsilon, true of the mechanism if its trade-off curve is Gaussian.

    Source: Nasr et al. (2023), Section 4.

    >>> point = Confusion(true_positives=600, n_members=1000, false_positives=400, n_non_members=1000,
    ...                   threshold_source="mu/2 of the claim")
    >>> round(epsilon_gdp(point, delta=1e-5).mu_low, 6)
    0.347039
    """
    check.open_unit(level=level)
    check.count(comparisons=comparisons)
    tpr_low, fpr_up = point.worst_rates(alpha=(1 - level) / comparisons)
    mu_low = max(0.0, float(special.ndtri(tpr_low) - special.ndtri(fpr_up)))
    return Certificate(
        method=METHOD,
        epsilon_low=epsilon_or_zero(mu_low, delta=delta),
        mu_low=mu_low,
        delta=delta,
        level=level,
        assumptions=(
            INDEPENDENT_TRIALS,
            FIXED_THRESHOLD,
            GAUSSIAN_CURVE,
            f"{comparisons} comparison(s) corrected for",
        ),
        threshold_source=point.threshold_source,
        evidence=str(point),
    )
