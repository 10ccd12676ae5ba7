"""What events cost, before any conversion to epsilon.

A leaf states the cost of one run; only :func:`total` multiplies by how often it ran. A new kind of event
is one class in :mod:`accountant.events` and one registration here.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import singledispatch

from accountant.events import (
    Event,
    Gaussian,
    GroupGaussian,
    Leaf,
    NonPrivate,
    PureDP,
    UnsupportedEventError,
    leaves,
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of events run on the same data; parts of one kind add up exactly.

    Attributes:
        mu: Gaussian-DP parameter of all Gaussian parts together, >= 0.
        pure: pairs (eps_0, times) of the pure parts, each eps_0 once, ascending.
        unbounded: why no promise holds at all, in words; None if one does.
    """

    mu: float = 0.0
    pure: tuple[tuple[float, int], ...] = ()
    unbounded: str | None = None


@singledispatch
def leaf_cost(leaf: Leaf) -> Cost:
    """Return the cost of ONE run of a leaf."""
    raise UnsupportedEventError(f"{leaf!r} has no known cost; wrap what it guarantees in PureDP.")


@leaf_cost.register(Gaussian)
def _gaussian(leaf: Gaussian) -> Cost:
    return Cost(mu=1 / leaf.noise_multiplier)


@leaf_cost.register(GroupGaussian)
def _group_gaussian(leaf: GroupGaussian) -> Cost:
    return Cost(mu=math.hypot(*(1 / sigma for sigma in leaf.noise_multipliers)))


@leaf_cost.register(PureDP)
def _pure(leaf: PureDP) -> Cost:
    return Cost(pure=((leaf.epsilon, 1),))


@leaf_cost.register(NonPrivate)
def _non_private(leaf: NonPrivate) -> Cost:
    return Cost(unbounded=leaf.reason)


def total(event: Event) -> Cost:
    """Return the cost of everything in an event; an empty composition costs nothing.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
    """
    squares: list[float] = []
    pure: Counter[float] = Counter()
    unbounded = None
    for leaf, runs in leaves(event):
        once = leaf_cost(leaf)
        squares.append(runs * once.mu * once.mu)
        unbounded = once.unbounded if unbounded is None else unbounded
        for epsilon, times in once.pure:
            pure[epsilon] += runs * times
    return Cost(mu=math.sqrt(math.fsum(squares)), pure=tuple(sorted(pure.items())), unbounded=unbounded)
