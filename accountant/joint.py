r"""Pure mechanisms and a Gaussian one, accounted jointly instead of added up.

An ``eps_0``-DP mechanism is never easier to tell apart than randomised response with the same
``eps_0``, adaptively composed ones included. The privacy loss of ``T`` randomised responses is a scaled
binomial, so joining them with mu-GDP gives a finite sum:

.. math:: \delta(\epsilon) = \sum_{i=0}^T \binom{T}{i} p^i (1-p)^{T-i}\,
          \delta_G(\epsilon - (2i - T)\epsilon_0; \mu), \qquad p = \frac{e^{\epsilon_0}}{1 + e^{\epsilon_0}}.

It is exact for randomised response and an upper bound for any other pure mechanism. All parameters must
be fixed in advance: a noise level chosen from earlier outputs needs a privacy filter instead.

``pure`` maps each ``eps_0`` to how many such mechanisms ran; ``mu`` is the Gaussian part, 0 for none.

Source: Kairouz, Oh and Viswanath (2015), Theorem 3.3, https://arxiv.org/abs/1311.0776; Dong, Roth and Su
(2022), Theorem 3.2, https://arxiv.org/abs/1905.02383
"""

import math
from collections.abc import Mapping

import numpy as np

from accountant import check, gaussian
from accountant.bracket import safe_root
from accountant.gaussian_array import log_delta_from_mu
from accountant.response import Losses, losses
from accountant.sequential import total_epsilon

_SAFETY = 1e-12  # relative; above the rounding error of the sum
_SLACK = 1e-6  # relative; the ends of a bracket lie this far beyond what theory says
_NEGLIGIBLE = -80.0  # an outcome this far below the largest, in ln, is beyond the last digit
_RARE = -50.0  # all outcomes this far below delta, in ln, are beyond the last digit together


def log_delta(*, epsilon: float, mu: float, pure: Mapping[float, int]) -> float:
    """Return ln of the delta for which the joint release is (epsilon, delta)-DP.

    Args:
        epsilon: in nats, any finite number.
        mu: at least 0.
        pure: ``{eps_0: times}``; may be empty.

    Returns:
        At most 0; -inf where no outcome loses more than ``epsilon``. With more than about 1,500 pure
        mechanisms, outcomes of mass below e^-760 count as lost, so a value below -740 is no longer tight.

    >>> round(log_delta(epsilon=1.0, mu=0.25, pure={0.002: 50}), 9)
    -12.712612016
    """
    check.finite(epsilon=epsilon)
    check.non_negative(mu=mu)
    return log_delta_of(losses(pure), epsilon=epsilon, mu=mu)


def delta(*, epsilon: float, mu: float, pure: Mapping[float, int]) -> float:
    """Return the delta for which the joint release is (epsilon, delta)-DP, in [0, 1].

    Arguments as in :func:`log_delta`.
    """
    return math.exp(log_delta(epsilon=epsilon, mu=mu, pure=pure))


def epsilon(*, delta: float, mu: float, pure: Mapping[float, int]) -> float:
    """Return the smallest epsilon >= 0 for which the joint release is (epsilon, delta)-DP.

    Args:
        delta: in (0, 1); 0 is allowed without a Gaussian part.
        mu: at least 0.
        pure: ``{eps_0: times}``; may be empty.

    Returns:
        In nats, never below the value of the sum and at most 2e-12 (relative) above it.

    >>> round(epsilon(delta=1e-5, mu=50**0.5 / 26, pure={0.002: 50}), 9)
    1.017552047
    """
    check.non_negative(mu=mu)
    total = total_epsilon(pure)
    if delta == 0 and mu == 0:
        return total
    check.open_unit(delta=delta)
    if not pure:
        return gaussian.epsilon_from_mu(mu=mu, delta=delta) if mu > 0 else 0.0
    target = math.log(delta)
    outcomes = losses(pure, rarest=target + _RARE)
    alone = gaussian.epsilon_from_mu(mu=mu, delta=delta) if mu > 0 else 0.0
    as_gaussian = gaussian.epsilon_from_mu(mu=math.hypot(mu, gaussian_equivalent(pure)), delta=delta)
    root = safe_root(
        lambda eps: log_delta_of(outcomes, epsilon=eps, mu=mu) - target,
        safe=min(alone + total, as_gaussian) * (1 + _SLACK),
        unsafe=alone * (1 - _SLACK),
    )
    return max(min(float(root) * (1 + _SAFETY), alone + total), alone)


def mu_from_epsilon(*, epsilon: float, delta: float, pure: Mapping[float, int]) -> float:
    """Return the largest Gaussian mu that keeps the joint release (epsilon, delta)-DP.

    Args:
        epsilon: in nats, at least 0.
        delta: in (0, 1).
        pure: ``{eps_0: times}``; may be empty.

    Returns:
        Never above the value of the sum and at most 2e-12 (relative) below it.

    Raises:
        ValueError: the pure part alone already needs more than (epsilon, delta).
    """
    check.non_negative(epsilon=epsilon)
    check.open_unit(delta=delta)
    alone = gaussian.mu_from_epsilon(epsilon=epsilon, delta=delta)
    if not pure:
        return alone
    target = math.log(delta)
    outcomes = losses(pure, rarest=target + _RARE)
    if log_delta_of(outcomes, epsilon=epsilon, mu=0.0) >= target:
        raise ValueError(
            f"epsilon={epsilon}, delta={delta} leave nothing for the Gaussian part: the pure part alone "
            "spends it; raise epsilon or lower the pure share."
        )
    root = safe_root(
        lambda mu: log_delta_of(outcomes, epsilon=epsilon, mu=mu) - target,
        safe=_safe_mu(epsilon, alone, outcomes, target, pure),
        unsafe=alone * (1 + _SLACK),
    )
    return min(float(root) * (1 - _SAFETY), alone)


def sigma_from_epsilon(*, epsilon: float, delta: float, rounds: int, selection_share: float) -> float:
    """Return the smallest noise multiplier of rounds that each select purely, then add Gaussian noise.

    Every round spends ``selection_share * epsilon / rounds`` on a pure selection (VPP's private top-k),
    and all rounds together are (epsilon, delta)-DP.

    Args:
        epsilon: total, in nats, > 0.
        delta: total, in (0, 1).
        rounds: at least 1.
        selection_share: fraction of epsilon that the selections spend, in (0, 1).

    Returns:
        Noise standard deviation / l2 sensitivity per round; for groups, that of the equivalent single
        Gaussian. Never below the value of the sum.

    >>> round(sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50, selection_share=0.2), 8)
    26.52757157
    """
    check.positive(epsilon=epsilon)
    check.count(rounds=rounds)
    check.open_unit(selection_share=selection_share)
    pure = {selection_share * epsilon / rounds: rounds}
    return math.sqrt(rounds) / mu_from_epsilon(epsilon=epsilon, delta=delta, pure=pure)


def gaussian_equivalent(pure: Mapping[float, int]) -> float:
    """Return a mu for which the pure mechanisms together are mu-GDP: a cheap upper bound of their cost."""
    return math.hypot(*(math.sqrt(n) * gaussian.mu_from_pure_epsilon(epsilon=eps) for eps, n in pure.items()))


def _safe_mu(
    epsilon: float, alone: float, outcomes: Losses, target: float, pure: Mapping[float, int]
) -> float:
    # As a Gaussian, the pure part takes its share of mu^2; where that leaves nothing, search downwards.
    left = alone * alone - gaussian_equivalent(pure) ** 2
    mu = math.sqrt(left) * (1 - _SLACK) if left > 0 else alone / 2
    while log_delta_of(outcomes, epsilon=epsilon, mu=mu) > target:
        mu /= 2
    return mu


def log_delta_of(outcomes: Losses, *, epsilon: float, mu: float) -> float:
    """Return ln delta of outcomes next to mu-GDP, any finite epsilon and mu at least 0."""
    left = epsilon - outcomes.loss
    if mu == 0:
        exceeded = left < 0
        terms = outcomes.log_mass[exceeded] + np.log(-np.expm1(left[exceeded]))
    else:
        bound = outcomes.log_mass - 0.5 * np.maximum(left / mu - mu / 2, 0.0) ** 2
        kept = bound >= bound.max() + _NEGLIGIBLE
        terms = outcomes.log_mass[kept] + log_delta_from_mu(left[kept], mu)
    largest = max(terms.max(initial=-math.inf), outcomes.log_certain)
    if math.isinf(largest):
        return -math.inf
    total = np.exp(terms - largest).sum() + math.exp(outcomes.log_certain - largest)
    return min(float(largest) + math.log(total), 0.0)
