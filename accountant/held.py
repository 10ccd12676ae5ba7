"""One record held several times: more than once by a client, or by several clients.

=========================================  =================================================
where the record is                        what its releases cost together
=========================================  =================================================
m times in one release                     ``m mu``, ``m epsilon`` (:func:`copies`)
in m clients' releases, each fresh noise   composed: ``sqrt(m) mu`` for equal Gaussian noise
in one of several disjoint clients         the costliest client alone
=========================================  =================================================

Source: group privacy: Dong, Roth and Su (2022), Theorem 2.14, https://arxiv.org/abs/1905.02383, for mu; Vadhan (2017),
Lemma 2.2, for epsilon and delta; parallel composition: McSherry (2009), Theorem 4
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import singledispatch

from accountant import check
from accountant.accountants import smallest
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    Leaf,
    NonPrivate,
    PureDP,
    Repeated,
    SubsampledGaussian,
    TopK,
    UnsupportedEventError,
)


@dataclass(frozen=True, kw_only=True)
class Held:
    """Clients that may hold the same records, and what all of them released.

    Attributes:
        clients: ascending.
        event: their releases, composed.
    """

    clients: tuple[int, ...]
    event: Event


def copies(event: Event, m: int) -> Event:
    """Return what an event costs a record that is in it ``m`` times.

    Args:
        event: priced for one record.
        m: times that the record is in every release, at least 1.

    Returns:
        The same releases, priced for all copies at once. Steps on a Poisson sample are priced without sampling: each
        copy is drawn on its own. A selection stays as it is: it paid for the whole range of every score.

    Raises:
        ValueError: nothing is left of an approximate guarantee (delta would reach 1).
        UnsupportedEventError: names a part of which nothing is known for several records.

    >>> copies(Gaussian(noise_multiplier=4.0), 2)  # doctest: +ELLIPSIS
    Gaussian(...noise_multiplier=2.0)
    """
    check.count(m=m)
    if m == 1:
        return event
    if isinstance(event, Repeated):
        return replace(event, event=copies(event.event, m))
    if isinstance(event, Composed):
        return replace(event, events=tuple(copies(part, m) for part in event.events))
    if not isinstance(event, Leaf):
        raise UnsupportedEventError(f"{event!r} is no event this accountant knows; wrap its cost in PureDP.")
    return _copied(event, m)


@singledispatch
def _copied(leaf: Leaf, m: int) -> Leaf:
    raise UnsupportedEventError(
        f"{type(leaf).__name__} has no known cost for a record held {m} times; wrap what it guarantees in PureDP."
    )


@_copied.register(NonPrivate)
@_copied.register(TopK)
def _whatever(leaf: Leaf, m: int) -> Leaf:
    return leaf


@_copied.register(Gaussian)
def _gaussian(leaf: Gaussian, m: int) -> Leaf:
    return replace(leaf, noise_multiplier=leaf.noise_multiplier / m)


@_copied.register(GroupGaussian)
def _group_gaussian(leaf: GroupGaussian, m: int) -> Leaf:
    return replace(leaf, noise_multipliers=tuple(sigma / m for sigma in leaf.noise_multipliers))


@_copied.register(SubsampledGaussian)
def _subsampled(leaf: SubsampledGaussian, m: int) -> Leaf:
    return Gaussian(noise_multiplier=leaf.noise_multiplier / m, contract=leaf.contract)


@_copied.register(PureDP)
def _pure(leaf: PureDP, m: int) -> Leaf:
    return replace(leaf, epsilon=leaf.epsilon * m)


@_copied.register(BoundedRange)
def _bounded_range(leaf: BoundedRange, m: int) -> Leaf:
    return replace(leaf, eta=leaf.eta * m)


@_copied.register(ApproximateDP)
def _approximate(leaf: ApproximateDP, m: int) -> Leaf:
    # delta (1 + e^eps + ... + e^((m-1) eps)), in logarithms: the sum overflows long before it matters
    log_sum = (m - 1) * leaf.epsilon + math.log(math.expm1(-m * leaf.epsilon) / math.expm1(-leaf.epsilon))
    log_delta = math.log(leaf.delta) + log_sum
    if log_delta >= 0:
        raise ValueError(
            f"epsilon={leaf.epsilon}, delta={leaf.delta} says nothing of a record held {m} times: its delta would "
            "reach 1; state the mechanism itself, or hold the record less often."
        )
    return replace(leaf, epsilon=leaf.epsilon * m, delta=math.exp(log_delta))


def held(events: Mapping[int, Event], *, shared: Iterable[Iterable[int]] = ()) -> tuple[Held, ...]:
    """Return the groups of clients that may hold the same records, each with all its releases; a record is in one.

    Args:
        events: everything each client released.
        shared: groups of clients that may hold the same records; groups that overlap count as one. Clients in no
            group hold records that nobody else holds.

    Raises:
        ValueError: a group names an unknown client, or fewer than two.
    """
    groups: list[set[int]] = []
    for given in shared:
        group = set(given)
        unknown = sorted(group - set(events))
        if unknown:
            raise ValueError(f"shared names client {unknown[0]}; known are {sorted(events)}.")
        if len(group) < 2:
            raise ValueError(f"shared={sorted(group)}; name at least two clients that hold the same records.")
        touching = [other for other in groups if other & group]
        groups = [other for other in groups if not other & group] + [group.union(*touching)]
    groups += [{client} for client in events if not any(client in group for group in groups)]
    ordered = sorted(tuple(sorted(group)) for group in groups)
    return tuple(
        Held(clients=group, event=Composed(events=tuple(events[m] for m in group))) for group in ordered
    )


def worst(events: Mapping[int, Event], *, delta: float, shared: Iterable[Iterable[int]] = ()) -> Held:
    """Return the clients whose common records pay most: sequential among those that share, parallel among the others.

    Arguments as in :func:`held`; ``delta`` is what costs are compared at.

    Raises:
        ValueError: there are no clients; or as in :func:`held` and :func:`accountant.accountants.smallest`.
    """
    if not events:
        raise ValueError("events is empty; give what at least one client released.")
    return max(held(events, shared=shared), key=lambda group: smallest(group.event, delta=delta).epsilon)
