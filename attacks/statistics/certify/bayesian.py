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

_NODES = 4096
_PROBABILITY_NODES = (np.arange(_NODES) + 0.5) / _NODES


def epsilon_bayesian(point: Confusion, *, delta: float, level: float = 0.95) -> Certificate:
    """Return the epsilon whose privacy region holds a posterior probability of only ``1 - level``.

    FNR and FPR are independent with Jeffreys priors: FNR ~ Beta(FN + 1/2, TP + 1/2) and
    FPR ~ Beta(FP + 1/2, TN + 1/2).

    This is a credible limit, not a confidence limit: without any leakage it is above 0 by construction, since
    the region of epsilon = 0 is a line. Never use it to call a violation.

    Args:
        point: counts at the threshold.
        delta: in [0, 1).
        level: posterior probability that epsilon is larger, in (0, 1).

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
        inside = special.betainc(*posterior, high_K) - special.betainc(*posterior, low_K)
        return float(inside.mean()) < 1 - level

    return Certificate(
        method="Bayesian, Jeffreys priors",
        epsilon_low=last_true(region_is_too_small, 0.0, 1.0, tolerance=1e-7),
        mu_low=None,
        delta=delta,
        level=level,
        assumptions=(
            INDEPENDENT_TRIALS,
            FIXED_THRESHOLD,
            "credible, not frequentist: above 0 even without leakage",
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
