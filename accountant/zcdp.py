r"""Zero-concentrated differential privacy: what a mechanism costs in rho, and what rho costs in epsilon.

A mechanism is rho-zCDP if its Renyi divergence of every order ``alpha > 1`` is at most ``rho alpha``. Costs of
mechanisms that run on the same data add up. The Gaussian mechanism has exactly ``rho alpha``, so a conversion
of rho is that of mu-GDP with ``mu = sqrt(2 rho)``.

Source: Bun and Steinke (2016), https://arxiv.org/abs/1605.02065
"""

import math

from accountant import check, rdp

_SMALL = 0.5  # below it, the series of exp keeps the digits that the closed form cancels
_TERMS = 18


def rho_from_mu(*, mu: float) -> float:
    """Return rho of mu-GDP, ``mu^2 / 2``.

    Args:
        mu: at least 0.

    >>> rho_from_mu(mu=2.0)
    2.0
    """
    check.non_negative(mu=mu)
    return mu * mu / 2


def rho_from_pure_epsilon(*, epsilon: float) -> float:
    """Return the smallest rho for which every (epsilon, 0)-DP mechanism is rho-zCDP, ``eps tanh(eps / 2)``.

    Args:
        epsilon: in nats, at least 0.

    >>> round(rho_from_pure_epsilon(epsilon=1.0), 12)
    0.46211715726

    Source: Bun and Steinke (2016), Proposition 3.3, with the divergence of randomised response at order 1.
    """
    check.non_negative(epsilon=epsilon)
    return epsilon * math.tanh(epsilon / 2)


def rho_from_laplace(*, epsilon: float) -> float:
    """Return the smallest rho for which Laplace noise that is (epsilon, 0)-DP is rho-zCDP, ``eps + e^-eps - 1``.

    Args:
        epsilon: sensitivity / scale of the noise, in nats, at least 0.

    >>> round(rho_from_laplace(epsilon=1.0), 12)
    0.367879441171

    Source: the Kullback-Leibler divergence of two shifted Laplace laws; Harrison and Manurangsi (2026),
    https://arxiv.org/abs/2510.25746
    """
    check.non_negative(epsilon=epsilon)
    if epsilon >= _SMALL:
        return epsilon + math.expm1(-epsilon)
    total = 0.0
    for order in range(_TERMS, 2, -1):
        total = (1 - total) * epsilon / order
    return epsilon * epsilon / 2 * (1 - total)


def epsilon_from_rho(*, rho: float, delta: float) -> float:
    """Return the epsilon >= 0 of rho-zCDP by the best known conversion, at the best of all orders.

    Args:
        rho: total, at least 0.
        delta: in (0, 1).

    >>> round(epsilon_from_rho(rho=0.5, delta=1e-5), 4)
    4.7284

    Source: docs of :mod:`accountant.rdp`.
    """
    check.non_negative(rho=rho)
    check.open_unit(delta=delta)
    return rdp.epsilon_best(mu=math.sqrt(2 * rho), delta=delta) if rho > 0 else 0.0


def epsilon_from_rho_classic(*, rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP by the classic conversion, ``rho + 2 sqrt(rho ln(1 / delta))``.

    Args:
        rho: total, at least 0.
        delta: in (0, 1).

    >>> round(epsilon_from_rho_classic(rho=0.5, delta=1e-5), 4)
    5.2985

    Source: Bun and Steinke (2016), Proposition 1.3
    """
    check.non_negative(rho=rho)
    check.open_unit(delta=delta)
    return rho + 2 * math.sqrt(-rho * math.log(delta))
