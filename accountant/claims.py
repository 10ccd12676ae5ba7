"""An epsilon with everything that makes it a claim: of what, under which relation, how it was computed."""

import math
from dataclasses import dataclass
from typing import Any, TypeVar

from accountant import check, gaussian, sequential
from accountant.assumptions import broken, in_order, needed
from accountant.bound import Bound as Bound
from accountant.contract import Contract, Relation
from accountant.cost import Cost, total
from accountant.events import Event, leaves
from accountant.tradeoff import AbstractCurve, GaussianCurve, NoPromise


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a set of releases promises.

    Attributes:
        epsilon: in nats, >= 0; inf if a release promises nothing.
        delta: probability that the promise fails, in [0, 1).
        relation: which data sets count as neighbours.
        unit: whose presence is hidden, in words.
        method: how epsilon was computed.
        bound: whether a better analysis of the same events could give less.
        releases: how many mechanisms ran, each counted as often as it ran.
        needs: ids of the assumptions that the claim rests on (:mod:`accountant.assumptions`).
        broken: pairs (id, reason) of those that the contracts break or leave undeclared.
        unbounded: why nothing is promised; None if something is.
    """

    epsilon: float
    delta: float
    relation: Relation
    unit: str
    method: str
    bound: Bound
    releases: int
    needs: tuple[str, ...]
    broken: tuple[tuple[str, str], ...]
    unbounded: str | None = None

    @property
    def covered(self) -> bool:
        """Return whether epsilon is finite and no assumption is broken."""
        return math.isfinite(self.epsilon) and not self.broken

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; an infinite epsilon is None, with its reason."""
        return {
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else None,
            "delta": self.delta,
            "relation": self.relation.value,
            "unit": self.unit,
            "method": self.method,
            "bound": self.bound.value,
            "releases": self.releases,
            "covered": self.covered,
            "needs": list(self.needs),
            "broken": [{"id": id, "reason": reason} for id, reason in self.broken],
            "reason": self.unbounded,
        }


def claim(event: Event, *, delta: float) -> Claim:
    """Return the smallest epsilon that the events are known to promise, with its conditions.

    ===============  ============  ==========================================================
    events           method        bound
    ===============  ============  ==========================================================
    none             nothing ran   exact: epsilon 0, under any relation
    all Gaussian     exact         exact
    some pure        joint         upper bound (exact for randomised response)
    too many kinds   sequential    upper bound, or "as Gaussian" where that is smaller
    a non-private    no promise    exact: epsilon inf, not covered
    ===============  ============  ==========================================================

    Args:
        event: everything that was released, whole.
        delta: in (0, 1); 0 is allowed without Gaussian parts.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
        ValueError: parts of the event were made for different relations or units.

    >>> from accountant.events import Gaussian, Repeated
    >>> found = claim(Repeated(event=Gaussian(noise_multiplier=26.37954927), count=50), delta=1e-5)
    >>> round(found.epsilon, 6), found.method, found.covered
    (1.0, 'exact', False)
    """
    parts = list(leaves(event))
    cost = total(event)
    epsilon, method, bound = _smallest_epsilon(cost, delta)
    needs: dict[Contract, set[str]] = {}
    for leaf, _ in parts:
        needs.setdefault(leaf.contract, set()).update(needed(leaf))
    found = {pair: None for contract, ids in needs.items() for pair in broken(contract, ids)}
    order = in_order(id for id, _ in found)
    return Claim(
        epsilon=epsilon,
        delta=delta,
        relation=_common([contract.relation for contract in needs], "relations", Contract().relation),
        unit=_common([contract.unit for contract in needs], "units of privacy", Contract().unit),
        method=method,
        bound=bound,
        releases=sum(runs for _, runs in parts),
        needs=in_order(id for ids in needs.values() for id in ids),
        broken=tuple(sorted(found, key=lambda pair: order.index(pair[0]))),
        unbounded=cost.unbounded,
    )


def curve(event: Event) -> AbstractCurve:
    """Return the ceiling that the events put on every membership attack, under their claimed guarantee.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
    """
    cost = total(event)
    if cost.unbounded is not None:
        return NoPromise()
    if not cost.pure:
        return GaussianCurve(mu=cost.mu)
    from accountant.joint_curve import JointCurve

    return JointCurve(mu=cost.mu, pure=cost.pure)


_T = TypeVar("_T", bound=str)


def _common(values: list[_T], name: str, without_parts: _T) -> _T:
    """Return the one value that all parts share, or the given one if there are no parts."""
    first, *others = dict.fromkeys(values) or (without_parts,)
    if others:
        raise ValueError(
            f"the event mixes two {name}, {str(first)!r} and {str(others[0])!r}; "
            "their costs do not add up, so claim them apart."
        )
    return first


def _smallest_epsilon(cost: Cost, delta: float) -> tuple[float, str, Bound]:
    check.closed_unit(delta=delta)
    if delta == 1 or (delta == 0 and cost.mu > 0):
        raise ValueError(f"delta={delta} must lie strictly between 0 and 1; Gaussian noise never reaches 0.")
    if cost.unbounded is not None:
        return math.inf, "no promise", Bound.EXACT
    if not cost.pure:
        if cost.mu == 0:
            return 0.0, "nothing ran", Bound.EXACT
        return gaussian.epsilon_from_mu(mu=cost.mu, delta=delta), "exact", Bound.EXACT
    return *_with_pure_parts(cost, delta), Bound.UPPER


def _with_pure_parts(cost: Cost, delta: float) -> tuple[float, str]:
    from accountant import joint
    from accountant.response import TooManyAtomsError

    pure = dict(cost.pure)
    try:
        return joint.epsilon(delta=delta, mu=cost.mu, pure=pure), "joint"
    except TooManyAtomsError:
        mu = math.hypot(cost.mu, joint.gaussian_equivalent(pure))
        return min(
            (sequential.epsilon(delta=delta, mu=cost.mu, pure=pure), "sequential"),
            (gaussian.epsilon_from_mu(mu=mu, delta=delta), "as Gaussian"),
        )
