r"""Closed forms of Gaussian differential privacy: what mu costs, and how much noise a budget needs.

``T`` rounds of Gaussian noise with standard deviation ``sigma`` times the sensitivity are exactly
mu-GDP with ``mu = sqrt(T) / sigma``, adaptive rounds included. With ``x = eps/mu - mu/2``,
``y = eps/mu + mu/2`` and the Mills ratio ``R``,

.. math:: \delta(\epsilon) = \Phi(-x) - e^\epsilon \Phi(-y) = \phi(x) [R(x) - R(y)],

whose right side neither overflows nor cancels. Calibration solves ``ln delta = target`` by Newton
steps. ``ln delta`` is concave in ``ln mu`` and in ``epsilon``, so the steps approach the root from the
safe side; the result is then moved to the safe side by more than the rounding error.

Source: Balle and Wang (2018), Theorem 8, https://arxiv.org/abs/1805.06530; Dong, Roth and Su (2022),
Corollary 2.13 and Section 3.2, https://arxiv.org/abs/1905.02383
"""

import math

from accountant import check
from accountant.normal import density, log_density, mills_drop, mills_ratio, quantile, quantile_from_log

_SAFETY = 2e-13  # relative; the rounding error of a root stays below 1e-13
_EPSILON_SAFETY = 1e-14  # relative to epsilon + mu, which is how epsilon's rounding error scales
_STEPS = 100  # Newton needs about six; never reached
_CLOSE = 1e-9  # a Newton step this small leaves an error near its square
_HUGE = 1e7  # above this mu, e^eps Phi(-y) is beyond the last digit and x = eps/mu - mu/2 has none


def mu_from_sigma(*, sigma: float, rounds: int = 1) -> float:
    """Return mu of ``rounds`` Gaussian releases, ``sqrt(rounds) / sigma``.

    Args:
        sigma: noise standard deviation / l2 sensitivity of one release; no unit, > 0.
        rounds: number of releases on the same data, at least 1.
    """
    check.positive(sigma=sigma)
    check.count(rounds=rounds)
    return math.sqrt(rounds) / sigma


def mu_from_pure_epsilon(*, epsilon: float) -> float:
    """Return the smallest mu for which every (epsilon, 0)-DP mechanism is mu-GDP.

    Source: Dong, Roth and Su (2022), ``2 Phi^{-1}(e^eps / (1 + e^eps))``.

    >>> round(mu_from_pure_epsilon(epsilon=1.0), 12)
    1.232035385345
    """
    check.positive(epsilon=epsilon)
    return -2 * quantile_from_log(-epsilon - math.log1p(math.exp(-epsilon)))


def mu_from_laplace(*, shift: float) -> float:
    """Return the smallest mu for which Laplace noise on one number is mu-GDP, ``2 Phi^{-1}(1 - e^{-shift/2} / 2)``.

    Args:
        shift: how far the number can move / scale of the noise, > 0.

    Source: Dong, Roth and Su (2022), Appendix A (trade-off function of Laplace noise); the worst point is where both
    error rates are equal.

    >>> round(mu_from_laplace(shift=1.0), 9)
    1.030063998
    """
    check.positive(shift=shift)
    return -2 * quantile_from_log(-shift / 2 - math.log(2))


def log_delta_from_mu(*, epsilon: float, mu: float) -> float:
    """Return ln of the smallest delta for which mu-GDP is (epsilon, delta)-DP.

    Args:
        epsilon: in nats, any finite number; negative values are the divergence at ``e^epsilon < 1``.
        mu: > 0.

    Returns:
        At most 0, to a relative error below 1e-9; -inf below -1e300.

    >>> round(log_delta_from_mu(epsilon=800.0, mu=10.0), 9)
    -2819.876965596
    """
    check.finite(epsilon=epsilon)
    check.positive(mu=mu)
    if epsilon >= 0:
        return _log_delta(epsilon, mu)[0]
    log_delta, _ = _log_delta(-epsilon, mu)  # delta(-e) = 1 - exp(-e) (1 - delta(e))
    rest = -math.exp(epsilon) * math.expm1(log_delta)
    if rest < 0.5:
        return math.log1p(-rest)
    return math.log(-math.expm1(epsilon) + math.exp(epsilon + log_delta))


def delta_from_mu(*, epsilon: float, mu: float) -> float:
    """Return the smallest delta for which mu-GDP is (epsilon, delta)-DP, in [0, 1].

    Arguments as in :func:`log_delta_from_mu`; 0.0 where it underflows, below 1e-323.

    >>> round(delta_from_mu(epsilon=0.0, mu=1.0), 12)
    0.382924922548
    """
    return math.exp(log_delta_from_mu(epsilon=epsilon, mu=mu))


def epsilon_from_mu(*, mu: float, delta: float) -> float:
    """Return the smallest epsilon >= 0 for which mu-GDP is (epsilon, delta)-DP.

    Args:
        mu: > 0.
        delta: strictly between 0 and 1.

    Returns:
        In nats, never below the exact value, at most 2e-14 * (epsilon + mu) above it; 0.0 exactly when
        ``delta`` already covers the total variation.

    >>> round(epsilon_from_mu(mu=1.0, delta=1e-5), 9)
    4.377178096
    """
    check.positive(mu=mu)
    check.open_unit(delta=delta)
    target = math.log(delta)
    if _log_delta(0.0, mu)[0] <= target:
        return 0.0
    epsilon = mu * (mu / 2 - quantile(delta))  # where Phi(-x) alone is delta: too large
    for _ in range(_STEPS if mu < _HUGE else 0):
        log_delta, drop = _log_delta(epsilon, mu)
        step = (log_delta - target) * drop / mills_ratio(epsilon / mu + mu / 2)
        epsilon = max(epsilon + step, 0.0)
        if step > -_CLOSE * epsilon:
            break
    return epsilon + _EPSILON_SAFETY * (epsilon + mu)


def mu_from_epsilon(*, epsilon: float, delta: float) -> float:
    """Return the largest mu for which mu-GDP is (epsilon, delta)-DP.

    Args:
        epsilon: in nats, at least 0.
        delta: strictly between 0 and 1.

    Returns:
        Never above the exact value, at most 1e-12 (relative) below it.

    >>> round(mu_from_epsilon(epsilon=1.0, delta=1e-5), 9)
    0.268051123
    """
    check.non_negative(epsilon=epsilon)
    check.open_unit(delta=delta)
    target = math.log(delta)
    mu = _too_small_mu(epsilon, delta)
    for _ in range(_STEPS if mu < _HUGE else 0):
        log_delta, drop = _log_delta(epsilon, mu)
        step = (target - log_delta) * drop / mu
        mu *= math.exp(step)
        if step < _CLOSE:
            break
    return mu * (1 - _SAFETY)


def sigma_from_epsilon(*, epsilon: float, delta: float, rounds: int = 1) -> float:
    """Return the smallest noise multiplier whose ``rounds`` releases are (epsilon, delta)-DP together.

    Args:
        epsilon: in nats, at least 0.
        delta: strictly between 0 and 1.
        rounds: number of releases on the same data, at least 1.

    Returns:
        Noise standard deviation / l2 sensitivity; never below the exact value, at most 1e-12 (relative)
        above it.

    >>> round(sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50), 9)
    26.379549271
    """
    check.count(rounds=rounds)
    return math.sqrt(rounds) / mu_from_epsilon(epsilon=epsilon, delta=delta)


def _too_small_mu(epsilon: float, delta: float) -> float:
    # delta < Phi(-x) and delta < mu / sqrt(2 pi): each solved for mu gives a lower bound.
    x = -quantile(delta)
    root = math.sqrt(x * x + 2 * epsilon)
    from_tail = 2 * epsilon / (x + root) if x > 0 else root - x
    return max(from_tail, delta * math.sqrt(2 * math.pi))


def _log_delta(epsilon: float, mu: float) -> tuple[float, float]:
    """Return ln delta and the drop R(x) - R(y), which is also d mu / d ln delta."""
    middle, half = epsilon / mu, mu / 2
    x, y = middle - half, middle + half
    if half <= max(0.5, middle / 8):
        drop = mills_drop(middle, half)
        return (log_density(x) + math.log(drop) if drop > 0 else -math.inf), drop
    drop = mills_ratio(x) - mills_ratio(y)
    if x < -1:
        return math.log1p(-density(x) * (mills_ratio(-x) + mills_ratio(y))), drop
    return log_density(x) + math.log(drop), drop
