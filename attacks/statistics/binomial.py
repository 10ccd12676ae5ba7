"""Exact limits for a proportion: k successes in n independent trials."""

import math
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from accountant import check


def lower_limit(successes: int, trials: int, *, level: float = 0.95) -> float:
    """Return the one-sided lower Clopper-Pearson limit for a proportion.

    Args:
        successes: how many trials succeeded, 0 to ``trials``.
        trials: how many independent trials there were, at least 1.
        level: confidence level, in (0, 1).

    Returns:
        The proportion that gives ``successes`` or more with probability ``1 - level``; 0 without success.

    Guarantees:
        At most the true proportion with probability at least ``level``, for any n.

    Source: Clopper and Pearson (1934), Biometrika 26.

    >>> round(lower_limit(5, 100, level=0.95), 7)
    0.0199056
    """
    _check(successes, trials, level)
    return float(lower_limits(np.array([successes]), trials, alpha=1 - level)[0])


def upper_limit(successes: int, trials: int, *, level: float = 0.95) -> float:
    """Return the one-sided upper Clopper-Pearson limit; see :func:`lower_limit`. It is 1 without failure.

    >>> round(upper_limit(5, 100, level=0.95), 7)
    0.1022534
    """
    _check(successes, trials, level)
    return float(upper_limits(np.array([successes]), trials, alpha=1 - level)[0])


def lower_limits(successes_K: Int[np.ndarray, " K"], trials: int, *, alpha: float) -> Float[np.ndarray, " K"]:
    """Return one-sided lower limits for many counts; ``alpha`` is the chance that one of them is too high."""
    k = np.maximum(successes_K, 1)
    return np.where(successes_K == 0, 0.0, special.betaincinv(k, trials - k + 1, alpha))


def upper_limits(successes_K: Int[np.ndarray, " K"], trials: int, *, alpha: float) -> Float[np.ndarray, " K"]:
    """Return one-sided upper limits for many counts; ``alpha`` is the chance that one of them is too low."""
    k = np.minimum(successes_K, trials - 1)
    return np.where(successes_K == trials, 1.0, special.betainccinv(k + 1, trials - k, alpha))


def clopper_pearson(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval, half of ``1 - level`` on each side.

    >>> [round(limit, 7) for limit in clopper_pearson(0, 100)]
    [0.0, 0.0362167]
    """
    one_sided = (1 + level) / 2
    return (
        lower_limit(successes, trials, level=one_sided),
        upper_limit(successes, trials, level=one_sided),
    )


def min_n_for_fpr(fpr: float, *, level: float = 0.95) -> int:
    """Return how few non-members, none of them flagged, certify a false-positive rate.

    Args:
        fpr: rate to certify, a fraction in (0, 1).
        level: confidence level, in (0, 1).

    Returns:
        The smallest n with ``(1 - fpr) ** n <= 1 - level``.

    >>> min_n_for_fpr(0.01), min_n_for_fpr(0.001)
    (299, 2995)
    """
    check.open_unit(fpr=fpr, level=level)
    doubt = float(1 - Fraction(str(float(level))))
    needed = math.log(doubt) / math.log1p(-fpr)
    # rounding must not turn an exact hit, such as 0.5 ** 2 = 1 - 0.75, into one more trial
    return max(1, math.ceil(needed - 1e-12 * needed))


def _check(successes: int, trials: int, level: float) -> None:
    check.count(trials=trials)
    check.open_unit(level=level)
    if successes != int(successes) or not 0 <= successes <= trials:
        raise ValueError(f"successes={successes} must be a whole number from 0 to trials={trials}.")
