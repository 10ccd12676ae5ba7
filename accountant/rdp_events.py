"""Renyi accounting of any events, with dp-accounting's orders and conversion.

An upper bound that is looser than :mod:`accountant.joint` and, unlike it, composes whatever has a Renyi
curve; kept as an independent check.
"""

import math

from accountant import check
from accountant.cost import total
from accountant.events import Event


def epsilon_from_event(event: Event, *, delta: float) -> float:
    """Return the epsilon of any events by Renyi accounting, as dp-accounting does it.

    Pure parts count as randomised response, the worst of their kind. The orders and the conversion are
    dp-accounting's; the curve of each part is the closed form, multiplied by how often it ran.

    Args:
        event: everything that was released, whole.
        delta: in (0, 1).

    Returns:
        In nats, >= 0; inf if a part promises nothing.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
    """
    check.open_unit(delta=delta)
    cost = total(event)
    if cost.unbounded is not None:
        return math.inf
    from dp_accounting.rdp import compute_epsilon
    from dp_accounting.rdp.rdp_privacy_accountant import DEFAULT_RDP_ORDERS

    orders = [float(order) for order in DEFAULT_RDP_ORDERS]
    curve = [
        order * cost.mu**2 / 2 + sum(n * _pure_divergence(order, eps) for eps, n in cost.pure)
        for order in orders
    ]
    return float(compute_epsilon(orders, curve, delta)[0])


def _pure_divergence(order: float, epsilon: float) -> float:
    """Return the Renyi divergence of randomised response (Mironov 2017, Proposition 5)."""
    # ln(q e^(a eps) + q e^((1-a) eps)) with q = 1 / (1 + e^eps), the largest exponent taken out
    exponent = (order - 1) * epsilon + math.log1p(math.exp((1 - 2 * order) * epsilon))
    return (exponent - math.log1p(math.exp(-epsilon))) / (order - 1)
