r"""Bounded-range mechanisms: the exponential mechanism and one pick by Gumbel noise.

A mechanism is eta-bounded-range if, between neighbours, the log-ratios of any two outcomes differ by at most
``eta``. The exponential mechanism with scores of sensitivity ``s`` and noise scale ``b`` has ``eta = 2 s / b``,
half of that if all scores move in one direction. It is eta-DP too, but that forgets most of it.

Source: Dong, Durfee and Rogers (2020), https://arxiv.org/abs/1909.13830 (the worst pair has two outcomes)
"""

import math

from accountant import check
from accountant.gaussian import mu_from_pure_epsilon

_SMALL_RHO = 0.25  # below it, five terms of Bernoulli's series leave no error and the closed form cancels
_SMALL_MU = 0.02  # below it, three terms of the series of erfinv leave no error
_RHO_SERIES = (1 / 8, -1 / 576, 1 / 25_920, -1 / 1_075_200, 1 / 43_545_600)


def rho(*, eta: float) -> float:
    r"""Return the smallest rho for which every eta-bounded-range mechanism is rho-zCDP.

    .. math:: \rho = u - 1 - \ln u, \qquad u = \frac{\eta}{1 - e^{-\eta}},

    at most ``eta^2 / 8`` and at most ``eta``.

    Args:
        eta: range of the log-ratio, in nats, > 0.

    Returns:
        > 0, to a relative error near 1e-14.

    >>> round(rho(eta=1.0), 12)
    0.123301561482

    Source: Harrison and Manurangsi (2026), https://arxiv.org/abs/2510.25746
    """
    check.positive(eta=eta)
    if eta < _SMALL_RHO:
        square = eta * eta
        return sum(factor * square ** (power + 1) for power, factor in enumerate(_RHO_SERIES))
    above_one = eta / -math.expm1(-eta) - 1
    return above_one - math.log1p(above_one)


def mu(*, eta: float) -> float:
    r"""Return the smallest mu for which every eta-bounded-range mechanism is mu-GDP.

    .. math:: \mu = 2\,\Phi^{-1}\!\left(\frac{1}{1 + e^{-\eta/2}}\right)

    Args:
        eta: range of the log-ratio, in nats, > 0.

    Returns:
        > 0, to a relative error near 1e-13; about ``0.6267 eta`` for small eta.

    >>> round(mu(eta=1.0), 12)
    0.623892592099

    Source: the worst of the two-outcome pairs is the symmetric one, so it is a randomised response with
    ``eta / 2``; Dong, Roth and Su (2022), https://arxiv.org/abs/1905.02383
    """
    check.positive(eta=eta)
    if eta < _SMALL_MU:
        z = math.tanh(eta / 4)
        series = 1 + math.pi * z * z / 12 + 7 * math.pi**2 * z**4 / 480
        return math.sqrt(2 * math.pi) * z * series
    return mu_from_pure_epsilon(epsilon=eta / 2)
