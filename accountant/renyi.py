"""Renyi accounting of any events, at the best of all orders, with the best known conversion.

Whatever has a Renyi divergence composes, so this is the way to price a subsampled Gaussian or the exponential
mechanism when there is no closed form. For Gaussian and pure parts :mod:`accountant.joint` gives less.

A leaf states the divergence of ONE run at given orders; only :func:`divergence` multiplies.

Source: Mironov (2017), https://arxiv.org/abs/1702.07476 (composition); Canonne, Kamath and Steinke (2020),
Proposition 12, https://arxiv.org/abs/2004.00010 (conversion)
"""

import math
from functools import singledispatch

import numpy as np
from jaxtyping import Float

from accountant import bounded_range, check
from accountant.cost import leaf_cost, total
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    Event,
    ExponentialTopK,
    GumbelTopK,
    LaplaceTopK,
    Leaf,
    PureDP,
    SubsampledGaussian,
    counted,
)
from accountant.relations import per_clip_norm

Orders = Float[np.ndarray, " A"]
_WIDE = 1 + np.geomspace(1e-6, 1e8, 141)
_ZOOMS, _ZOOM_POINTS = 4, 21
_LARGE = 30.0  # order times epsilon from which the largest exponent is all that counts


@singledispatch
def leaf_divergence(leaf: Leaf, orders: Orders) -> Orders:
    """Return the Renyi divergence of ONE run of a leaf at each order, in nats; its Gaussian part's by default.

    Raises:
        UnsupportedEventError: its cost is not known.
    """
    return orders * leaf_cost(leaf).mu ** 2 / 2


@leaf_divergence.register(PureDP)
@leaf_divergence.register(ApproximateDP)
@leaf_divergence.register(LaplaceTopK)
@leaf_divergence.register(ExponentialTopK)
def _pure(leaf: PureDP | ApproximateDP | LaplaceTopK | ExponentialTopK, orders: Orders) -> Orders:
    return _randomized_response(leaf.epsilon, orders)


@leaf_divergence.register(BoundedRange)
def _bounded_range(leaf: BoundedRange, orders: Orders) -> Orders:
    return _range(leaf.eta, orders)


@leaf_divergence.register(GumbelTopK)
def _gumbel_top_k(leaf: GumbelTopK, orders: Orders) -> Orders:
    return leaf.k * _range(leaf.eta, orders)


@leaf_divergence.register(SubsampledGaussian)
def _subsampled(leaf: SubsampledGaussian, orders: Orders) -> Orders:
    replaced = per_clip_norm(leaf) > leaf.noise_multiplier
    if not leaf.amplified or replaced:  # to replace a record is priced as if nothing were sampled
        return orders / (2 * leaf.noise_multiplier**2)
    from accountant import subsampled_rdp

    return subsampled_rdp.divergence(
        order=orders, noise_multiplier=leaf.noise_multiplier, sampling_rate=leaf.sampling_rate
    )


def divergence(event: Event, orders: Orders) -> Orders:
    """Return the Renyi divergence of everything in an event at each order, in nats.

    Args:
        event: everything that was released, whole; a part without noise is not known here.
        orders: each above 1, shape [A].

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
    """
    return _divergence(counted(event), orders)


def epsilon_from_event(event: Event, *, delta: float) -> float:
    """Return the epsilon of any events by Renyi divergence, an upper bound.

    Orders are searched from 1 + 1e-6 to 1e8 and closer around the best one: every order gives a valid bound.

    Args:
        event: everything that was released, whole.
        delta: in (0, 1).

    Returns:
        In nats, >= 0; inf if a part promises nothing, or approximate parts alone fail more often than delta.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.

    >>> from accountant.events import Gaussian, Repeated
    >>> event = Repeated(event=Gaussian(noise_multiplier=26.379549270874083), count=50)
    >>> round(epsilon_from_event(event, delta=1e-5), 6)
    1.09215
    """
    check.open_unit(delta=delta)
    cost = total(event)
    left = cost.delta_left(delta)
    if cost.unbounded is not None or left <= 0:
        return math.inf
    return best_bound(event, delta=left) if cost.pure or cost.mu > 0 else 0.0


def best_bound(event: Event, *, delta: float) -> float:
    """Return the epsilon >= 0 of events that all have a Renyi divergence, at a delta that is theirs alone."""
    parts, orders, found = counted(event), _WIDE, math.inf
    for _ in range(_ZOOMS):
        bounds = _divergence(parts, orders) + _penalty(orders, delta)
        best = int(np.argmin(bounds))
        found = min(found, float(bounds[best]))
        ends = orders[max(best - 1, 0)], orders[min(best + 1, len(orders) - 1)]
        orders = 1 + np.geomspace(ends[0] - 1, ends[1] - 1, _ZOOM_POINTS)
    return max(0.0, found)


def _divergence(parts: dict[Leaf, int], orders: Orders) -> Orders:
    found = np.zeros_like(orders)
    for leaf, times in parts.items():
        found += times * leaf_divergence(leaf, orders)
    return found


def _penalty(orders: Orders, delta: float) -> Orders:
    return np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)


def _range(eta: float, orders: Orders) -> Orders:
    return np.minimum(bounded_range.rho(eta=eta) * orders, _randomized_response(eta, orders))


def _randomized_response(epsilon: float, orders: Orders) -> Orders:
    """Return the Renyi divergence of randomised response (Mironov 2017, Proposition 5)."""
    # (a - 1) D = ln cosh((a - 1/2) eps) - ln cosh(eps / 2)
    large = (orders - 1) * epsilon + np.log1p(np.exp((1 - 2 * orders) * epsilon))
    large -= math.log1p(math.exp(-epsilon))
    # the same as ln(1 + excess), without subtracting what is nearly equal
    half = np.minimum(orders * epsilon, _LARGE) / 2
    excess = 2 * np.sinh(half) * np.sinh(np.minimum((orders - 1) * epsilon, _LARGE) / 2)
    small = np.log1p(excess / math.cosh(min(epsilon, _LARGE) / 2))
    close = np.where(orders * epsilon < _LARGE, small, large) / (orders - 1)
    return np.minimum(close, np.minimum(epsilon, orders * epsilon * math.tanh(epsilon / 2)))
