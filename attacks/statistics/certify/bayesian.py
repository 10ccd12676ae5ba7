"""Epsilon from the rates at one threshold, as a credible limit."""

import math

import numpy as np
from jaxtyping import Float
from scipy import special

from accountant import check
from attacks.statistics.certify.certificate import Certificate
from attacks.statistics.certify.clopper_pearson import FIXED_THRESHOLD, INDEPENDENT_TRIALS
from attacks.statistics.confusion import Confusion
from attacks.statistics.search import last_true

TWO_SIDED, ONE_SIDED = "Bayesian", "Bayesian, one-sided"
"""Names of the limit as published, and of ours."""

_LINE = "credible, not frequentist: above 0 even without leakage"
_HALF = "credible, not frequentist; an attack that is worse than guessing is taken for no leakage"
_NODES = 4096
_PROBABILITY_NODES = (np.arange(_NODES) + 0.5) / _NODES


def epsilon_bayesian(
    point: Confusion, *, delta: float, level: float = 0.95, one_sided: bool = False
) -> Certificate:
    """Return the epsilon whose privacy region holds a posterior probability of only ``1 - level``.

    FNR and FPR are independent with Jeffreys priors: FNR ~ Beta(FN + 1/2, TP + 1/2) and
    FPR ~ Beta(FP + 1/2, TN + 1/2).

    This is a credible limit, not a confidence limit: never use it to call a violation. As published, it asks how far
    the rates are from either side of no leakage: the region of epsilon = 0 is a line, so the limit is above 0 by
    construction. One-sided (ours), an attack that is worse than guessing counts as no leakage: without any, the limit
    is above 0 about as often as ``1 - level`` says.

    Args:
        point: counts at the threshold.
        delta: in [0, 1).
        level: posterior probability that epsilon is larger, in (0, 1).
        one_sided: leave out the half of the region's border that only a flipped attack can cross; the direction must
            have been fixed without looking at these scores.

    Returns:
        Certificate without mu; epsilon to 1e-3 or better.

    Source: Zanella-Beguelin et al. (2023), Section 4, https://arxiv.org/abs/2206.05199

    >>> point = Confusion(true_positives=487, n_members=487, false_positives=512, n_non_members=513,
    ...                   threshold_source="not known")
    >>> round(epsilon_bayesian(point, delta=1e-5).epsilon_low, 3)
    0.144
    """
    check.open_unit(level=level)
    if not 0 <= delta < 1:
        raise ValueError(f"delta={delta} must be at least 0 and below 1.")
    false_negatives = point.n_members - point.true_positives
    true_negatives = point.n_non_members - point.false_positives
    # midpoints in probability: the nodes follow the posterior of FNR, however narrow it is
    fnr_K = special.betaincinv(false_negatives + 0.5, point.true_positives + 0.5, _PROBABILITY_NODES)
    posterior = (point.false_positives + 0.5, true_negatives + 0.5)

    def region_is_too_small(epsilon: float) -> bool:
        low_K, high_K = _fpr_range(fnr_K, epsilon=epsilon, delta=delta)
        high_K = np.ones_like(high_K) if one_sided else high_K
        inside = special.betainc(*posterior, high_K) - special.betainc(*posterior, low_K)
        return float(inside.mean()) < 1 - level

    return Certificate(
        method=ONE_SIDED if one_sided else TWO_SIDED,
        epsilon_low=last_true(region_is_too_small, 0.0, 1.0, tolerance=1e-7),
        mu_low=None,
        delta=delta,
        level=level,
        assumptions=(
            INDEPENDENT_TRIALS,
            FIXED_THRESHOLD,
            "Jeffreys priors of both rates",
            _HALF if one_sided else _LINE,
        ),
        threshold_source=point.threshold_source,
        evidence=str(point),
    )


def _fpr_range(
    fnr_K: Float[np.ndarray, " K"], *, epsilon: float, delta: float
) -> tuple[Float[np.ndarray, " K"], Float[np.ndarray, " K"]]:
    """Return the false-positive rates that (epsilon, delta)-DP allows at each false-negative rate."""
    grow = math.exp(min(epsilon, 700.0))
    low_K = np.maximum(1 - delta - grow * fnr_K, (1 - delta - fnr_K) / grow)
    high_K = 1 - np.maximum(1 - delta - grow * (1 - fnr_K), (1 - delta - (1 - fnr_K)) / grow)
    return np.clip(low_K, 0, 1), np.clip(high_K, 0, 1)
