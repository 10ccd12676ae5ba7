r"""The noise formula that VPDR publishes, and what it really gives.

The paper states :math:`\sigma = c_1 \sqrt{T \ln(1/\delta)} / \epsilon` with an unspecified constant. No
constant makes it a calibration: the smallest valid one depends on epsilon.

Source: VPDR, Eq. 6; its form is the asymptotic one of Abadi et al. (2016), Theorem 1,
https://arxiv.org/abs/1607.00133
"""

import math
from dataclasses import dataclass

from accountant import check
from accountant.gaussian import delta_from_mu, epsilon_from_mu, mu_from_epsilon, mu_from_sigma


@dataclass(frozen=True, kw_only=True)
class PaperCalibration:
    """Noise by the published formula next to the truth.

    Attributes:
        sigma: noise multiplier that the formula gives.
        epsilon: what that noise really costs at the claimed delta, in nats.
        delta: what really goes with the claimed epsilon.
        valid: whether the claim holds.
    """

    sigma: float
    epsilon: float
    delta: float
    valid: bool


def sigma_from_formula(*, epsilon: float, delta: float, rounds: int = 1, c1: float = 1.0) -> float:
    """Return ``c1 sqrt(rounds ln(1 / delta)) / epsilon``.

    Args:
        epsilon: claimed, in nats, > 0.
        delta: claimed, in (0, 1).
        rounds: number of releases, at least 1.
        c1: the constant, > 0.

    >>> round(sigma_from_formula(epsilon=1.0, delta=1e-5, rounds=50), 2)
    23.99
    """
    check.positive(epsilon=epsilon, c1=c1)
    check.open_unit(delta=delta)
    check.count(rounds=rounds)
    return c1 * math.sqrt(-rounds * math.log(delta)) / epsilon


def truth(*, epsilon: float, delta: float, rounds: int = 1, c1: float = 1.0) -> PaperCalibration:
    """Return the formula's noise and what it really promises; arguments as in :func:`sigma_from_formula`.

    >>> found = truth(epsilon=8.0, delta=1e-5)
    >>> round(found.epsilon, 3), round(found.delta, 4), found.valid
    (12.267, 0.0062, False)
    """
    sigma = sigma_from_formula(epsilon=epsilon, delta=delta, rounds=rounds, c1=c1)
    mu = mu_from_sigma(sigma=sigma, rounds=rounds)
    true_delta = delta_from_mu(epsilon=epsilon, mu=mu)
    return PaperCalibration(
        sigma=sigma,
        epsilon=epsilon_from_mu(mu=mu, delta=delta),
        delta=true_delta,
        valid=true_delta <= delta,
    )


def smallest_valid_c1(*, epsilon: float, delta: float) -> float:
    """Return the smallest constant for which the formula holds, whatever the rounds.

    Args:
        epsilon: claimed, in nats, > 0.
        delta: claimed, in (0, 1).

    >>> [round(smallest_valid_c1(epsilon=eps, delta=1e-5), 3) for eps in (0.1, 1.0, 8.0)]
    [0.906, 1.099, 1.415]
    """
    check.positive(epsilon=epsilon)
    mu = mu_from_epsilon(epsilon=epsilon, delta=delta)
    return epsilon / (mu * math.sqrt(-math.log(delta)))
