"""What events cost as Gaussian and pure parts, before any conversion to epsilon.

A leaf states the cost of one run; only :func:`total` multiplies by how often it ran. A new kind of event
is one class in :mod:`accountant.events` and one registration here (and in :mod:`accountant.renyi`, where that
gives less).
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import singledispatch

from accountant import bounded_range
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    ClipSet,
    Event,
    ExponentialTopK,
    Gaussian,
    GaussianTopK,
    GroupGaussian,
    GumbelTopK,
    LaplaceTopK,
    Leaf,
    NonPrivate,
    PureDP,
    SubsampledGaussian,
    UnsupportedEventError,
    counted,
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of events run on the same data; parts of one kind add up exactly.

    Attributes:
        mu: Gaussian-DP parameter of all Gaussian parts together, >= 0.
        pure: pairs (eps_0, times) of the pure parts, each eps_0 once, ascending.
        log_kept: ln of the probability that no approximate part gives its secret away, <= 0.
        tight: whether ``mu`` is what the mechanisms have, not a bound of it.
        unbounded: why no promise holds at all, in words; None if one does.
    """

    mu: float = 0.0
    pure: tuple[tuple[float, int], ...] = ()
    log_kept: float = 0.0
    tight: bool = True
    unbounded: str | None = None

    def delta_left(self, delta: float) -> float:
        """Return what is left of delta, in [0, 1), once approximate parts have failed; 0 or below for nothing."""
        return -math.expm1(math.log1p(-delta) - self.log_kept) if self.log_kept else delta


@singledispatch
def leaf_cost(leaf: Leaf) -> Cost:
    """Return the cost of ONE run of a leaf."""
    raise UnsupportedEventError(f"{leaf!r} has no known cost; wrap what it guarantees in PureDP.")


@leaf_cost.register(Gaussian)
def _gaussian(leaf: Gaussian) -> Cost:
    return Cost(mu=1 / leaf.noise_multiplier)


@leaf_cost.register(GroupGaussian)
def _group_gaussian(leaf: GroupGaussian) -> Cost:
    costs = tuple(1 / sigma for sigma in leaf.noise_multipliers)
    return Cost(mu=math.hypot(*costs) if leaf.clip is ClipSet.GROUPWISE else max(costs))


@leaf_cost.register(SubsampledGaussian)
def _subsampled(leaf: SubsampledGaussian) -> Cost:
    return Cost(mu=1 / leaf.noise_multiplier, tight=not leaf.amplified)  # as if nothing were sampled


@leaf_cost.register(GaussianTopK)
def _gaussian_top_k(leaf: GaussianTopK) -> Cost:
    return Cost(mu=leaf.mu, tight=False)


@leaf_cost.register(GumbelTopK)
def _gumbel_top_k(leaf: GumbelTopK) -> Cost:
    return Cost(mu=math.sqrt(leaf.k) * bounded_range.mu(eta=leaf.eta), tight=False)


@leaf_cost.register(BoundedRange)
def _bounded_range(leaf: BoundedRange) -> Cost:
    return Cost(mu=bounded_range.mu(eta=leaf.eta), tight=False)


@leaf_cost.register(LaplaceTopK)
@leaf_cost.register(ExponentialTopK)
@leaf_cost.register(PureDP)
def _pure(leaf: LaplaceTopK | ExponentialTopK | PureDP) -> Cost:
    return Cost(pure=((leaf.epsilon, 1),))


@leaf_cost.register(ApproximateDP)
def _approximate(leaf: ApproximateDP) -> Cost:
    return Cost(pure=((leaf.epsilon, 1),), log_kept=math.log1p(-leaf.delta))


@leaf_cost.register(NonPrivate)
def _non_private(leaf: NonPrivate) -> Cost:
    return Cost(unbounded=leaf.reason)


def total(event: Event) -> Cost:
    """Return the cost of everything in an event; an empty composition costs nothing.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
    """
    once = [(leaf_cost(leaf), times) for leaf, times in counted(event).items()]
    pure: Counter[float] = Counter()
    for cost, times in once:
        for epsilon, of_one in cost.pure:
            pure[epsilon] += times * of_one
    return Cost(
        mu=math.hypot(*(math.sqrt(times) * cost.mu for cost, times in once)),
        pure=tuple(sorted(pure.items())),
        log_kept=math.fsum(times * cost.log_kept for cost, times in once),
        tight=all(cost.tight for cost, _ in once),
        unbounded=next((cost.unbounded for cost, _ in once if cost.unbounded is not None), None),
    )
