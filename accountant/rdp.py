r"""Gaussian noise accounted by Renyi divergence, for comparison with the exact value.

The Gaussian mechanism has the Renyi curve ``alpha mu^2 / 2``; what is lost is lost when the curve is
turned into (epsilon, delta). Two conversions are given, with ``L = ln(1 / delta)``:

* classic, ``min_alpha  alpha mu^2/2 + L / (alpha - 1)``, on any grid of orders or the best order of all;
* best, ``min_alpha  alpha mu^2/2 + ln(1 - 1/alpha) + (L - ln alpha) / (alpha - 1)``, at the best order.

Source: Mironov (2017), Proposition 3, https://arxiv.org/abs/1702.07476 (classic); Canonne, Kamath and Steinke
(2020), Proposition 12, https://arxiv.org/abs/2004.00010, also Balle et al. (2020) (best)
"""

import math
from collections.abc import Callable, Sequence

from accountant import check

VPDR_ORDERS: tuple[float, ...] = (
    *(round(0.1 * tenth, 1) for tenth in range(11, 110)),
    *map(float, range(11, 64)),
    128.0,
    256.0,
    512.0,
)
"""The orders that the authors of VPDR search, with the classic conversion."""

_GOLDEN = (math.sqrt(5) - 1) / 2
_SAFETY = 1e-12  # relative; far above the rounding error of the closed forms


def epsilon_classic(*, mu: float, delta: float, orders: Sequence[float] | None = None) -> float:
    """Return the epsilon of mu-GDP by the classic conversion.

    Args:
        mu: > 0.
        delta: in (0, 1).
        orders: Renyi orders to search, each finite and > 1; the best of all orders if left out.

    >>> round(epsilon_classic(mu=50**0.5 / 26.379549270874083, delta=1e-5), 4)
    1.3222
    """
    check.positive(mu=mu)
    check.open_unit(delta=delta)
    rho, log_inverse = mu * mu / 2, -math.log(delta)
    if orders is None:
        return rho + 2 * math.sqrt(rho * log_inverse)
    return min(rho * order + log_inverse / (order - 1) for order in checked_orders(orders))


def sigma_classic(
    *, epsilon: float, delta: float, rounds: int = 1, orders: Sequence[float] | None = None
) -> float:
    """Return the noise multiplier that the classic conversion asks for.

    Args:
        epsilon: in nats, > 0.
        delta: in (0, 1).
        rounds: number of releases, at least 1.
        orders: Renyi orders to search, each finite and > 1; the best of all orders if left out.

    Raises:
        ValueError: epsilon is too small for the largest order of the grid.

    >>> round(sigma_classic(epsilon=0.9, delta=1e-5, rounds=50, orders=VPDR_ORDERS), 4)
    38.4239
    """
    check.positive(epsilon=epsilon)
    check.open_unit(delta=delta)
    check.count(rounds=rounds)
    log_inverse = -math.log(delta)
    if orders is None:
        root = math.sqrt(log_inverse)
        return _sigma((epsilon / (math.sqrt(log_inverse + epsilon) + root)) ** 2, rounds)
    rho = max((epsilon - log_inverse / (order - 1)) / order for order in checked_orders(orders))
    if rho <= 0:
        reach = log_inverse / (max(orders) - 1)
        raise ValueError(
            f"epsilon={epsilon} at delta={delta} is out of reach of orders up to {max(orders):g}, which stop "
            f"at {reach:.3g}; use the exact calibration."
        )
    return _sigma(rho, rounds)


def epsilon_best(*, mu: float, delta: float) -> float:
    """Return the epsilon >= 0 of mu-GDP by the best known conversion at the best order.

    Args:
        mu: > 0.
        delta: in (0, 1).

    >>> round(epsilon_best(mu=50**0.5 / 26.379549270874083, delta=1e-5), 9)
    1.092150304
    """
    check.positive(mu=mu)
    check.open_unit(delta=delta)
    rho = mu * mu / 2
    return max(0.0, _smallest(lambda order: rho * order + _penalty(order, delta)))


def sigma_best(*, epsilon: float, delta: float, rounds: int = 1) -> float:
    """Return the noise multiplier that the best conversion asks for at the best order.

    Args:
        epsilon: in nats, > 0.
        delta: in (0, 1).
        rounds: number of releases, at least 1.

    >>> round(sigma_best(epsilon=1.0, delta=1e-5), 4)
    4.0451
    """
    check.positive(epsilon=epsilon)
    check.open_unit(delta=delta)
    check.count(rounds=rounds)
    return _sigma(-_smallest(lambda order: (_penalty(order, delta) - epsilon) / order), rounds)


def _penalty(order: float, delta: float) -> float:
    """Return what the best conversion adds to the Renyi divergence at one order."""
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def checked_orders(orders: Sequence[float]) -> Sequence[float]:
    """Return Renyi orders; none at all, and one that is not finite and above 1, are refused."""
    if not orders or not all(1 < order < math.inf for order in orders):
        raise ValueError(f"orders={list(orders)} must hold at least one order, each finite and above 1.")
    return orders


def _sigma(rho: float, rounds: int) -> float:
    return math.sqrt(rounds / (2 * rho)) * (1 + _SAFETY)


def _smallest(objective: Callable[[float], float]) -> float:
    """Return the smallest value over all orders above 1, by golden section in ln(order - 1)."""
    low, high = -30.0, 60.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = objective(1 + math.exp(left)), objective(1 + math.exp(right))
    while high - low > 1e-8:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = objective(1 + math.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = objective(1 + math.exp(right))
    return min(at_left, at_right)
