"""An epsilon with everything that makes it a claim: of what, under which relation, how it was computed."""

import math
from dataclasses import dataclass
from typing import Any, TypeVar

from accountant.accountants import gaussian_mu, smallest
from accountant.assumptions import broken, in_order, needed
from accountant.bound import Bound as Bound
from accountant.consequences import Broken, priced
from accountant.contract import Contract, Query, Relation
from accountant.cost import total
from accountant.events import Event, LaplaceTopK, Leaf, SubsampledGaussian, counted
from accountant.relations import per_clip_norm, restated
from accountant.tradeoff import AbstractCurve, GaussianCurve, LossyCurve, LowestCurve, NoPromise


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
        broken: those that the contracts break or leave undeclared, each with what that costs.
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
    broken: tuple[Broken, ...]
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
            "broken": [found.to_dict() for found in self.broken],
            "reason": self.unbounded,
        }


def claim(event: Event, *, delta: float, relation: Relation | None = None) -> Claim:
    """Return the smallest epsilon that the events are known to promise, with its conditions.

    =====================  ============  ======================================================
    events                 method        bound
    =====================  ============  ======================================================
    none                   nothing ran   exact: epsilon 0, under any relation
    all Gaussian           exact         exact
    some pure              joint         upper bound (exact for randomised response)
    others                 the smallest  upper bound (:mod:`accountant.accountants`)
    a non-private          no promise    exact: epsilon inf, not covered
    =====================  ============  ======================================================

    Args:
        event: everything that was released, whole.
        delta: in (0, 1); 0 is allowed without Gaussian parts.
        relation: which neighbours to claim for; by default those that the contracts were made for.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
        ValueError: parts of the event were made for different relations or units, or have no sensitivity under
            the relation asked for.

    >>> from accountant.events import Gaussian, LaplaceTopK, Repeated
    >>> found = claim(Repeated(event=Gaussian(noise_multiplier=26.37954927), count=50), delta=1e-5)
    >>> round(found.epsilon, 6), found.method, found.covered
    (1.0, 'exact', False)
    """
    at_limit = relation is not None and any(
        _changes_counts(leaf, Relation(relation)) for leaf in counted(event)
    )
    event = event if relation is None else restated(event, Relation(relation))
    parts = counted(event)
    answer = smallest(event, delta=delta)
    contracts = [leaf.contract for leaf in parts]
    return Claim(
        epsilon=answer.epsilon,
        delta=delta,
        relation=_common(
            [c.relation for c in contracts], "relations", Relation(relation or Contract().relation)
        ),
        unit=_common([c.unit for c in contracts], "units of privacy", Contract().unit),
        method=answer.method,
        bound=Bound.UPPER if at_limit else answer.bound,  # sqrt 2 is the limit of large classes
        releases=sum(parts.values()),
        needs=in_order(id for leaf in parts for id in needed(leaf)),
        broken=_broken(parts, delta),
        unbounded=_unbounded(event, answer.epsilon),
    )


def _unbounded(event: Event, epsilon: float) -> str | None:
    """Return why nothing is promised, or None."""
    cost = total(event)
    if cost.unbounded is not None or not math.isinf(epsilon):
        return cost.unbounded
    return _APPROXIMATE if cost.log_kept else _TOO_LARGE


def _broken(parts: dict[Leaf, int], delta: float) -> tuple[Broken, ...]:
    """Return what the parts break, A1 first, each pair of assumption and reason once."""
    breaking: dict[tuple[str, str], set[Leaf]] = {}
    for leaf in parts:
        for pair in broken(leaf.contract, needed(leaf)):
            breaking.setdefault(pair, set()).add(leaf)
    order = in_order(id for id, _ in breaking)
    pairs = sorted(breaking, key=lambda pair: order.index(pair[0]))
    return tuple(priced(id, reason, parts, breaking[id, reason], delta=delta) for id, reason in pairs)


@dataclass(frozen=True, kw_only=True)
class Under:
    """What releases cost under one neighbouring relation.

    Attributes:
        epsilon: in nats; None where none holds.
        reason: why none holds; empty if one does.
        at_fixed_counts: what epsilon would be if the record did not change the counts; None where that is no question.
    """

    epsilon: float | None
    reason: str = ""
    at_fixed_counts: float | None = None


def neighbours(event: Event, *, delta: float) -> dict[Relation, Under]:
    """Return what the same releases cost under every neighbouring relation: of records, or else of clients.

    Arguments as in :func:`claim`.
    """
    about_clients = any(leaf.contract.relation.about_clients for leaf in counted(event))
    same_kind = [relation for relation in Relation if relation.about_clients is about_clients]
    return {relation: _under(event, relation, delta) for relation in same_kind}


def _under(event: Event, relation: Relation, delta: float) -> Under:
    try:
        other = restated(event, relation)
        epsilon = smallest(other, delta=delta).epsilon
    except ValueError as error:
        return Under(epsilon=None, reason=str(error))
    if any(_changes_counts(leaf, relation) for leaf in counted(event)):
        return Under(epsilon=None, reason=_COUNTS_CHANGE, at_fixed_counts=epsilon)
    return Under(epsilon=epsilon)


def _changes_counts(leaf: Leaf, relation: Relation) -> bool:
    """Return whether neighbours differ in counts that scale the noise, although those of the contract do not."""
    changing = relation is Relation.REPLACE_ANY_LABEL and leaf.contract.relation is not relation
    return changing and leaf.contract.query is Query.CLASS_MEANS


def under_relations(event: Event, *, delta: float) -> dict[Relation, float | str]:
    """Return epsilon of the same releases under every neighbouring relation, or why there is none.

    Arguments as in :func:`claim`.
    """
    found: dict[Relation, float | str] = {}
    for relation, under in neighbours(event, delta=delta).items():
        fixed = (
            ""
            if under.at_fixed_counts is None
            else f" (at fixed counts, epsilon {under.at_fixed_counts:.4g})"
        )
        found[relation] = f"{under.reason}{fixed}" if under.epsilon is None else under.epsilon
    return found


def curve(event: Event) -> AbstractCurve:
    """Return the ceiling that the events put on every membership attack, under their claimed guarantee.

    Raises:
        UnsupportedEventError: names the part whose cost is not known.
    """
    cost = total(event)
    if cost.unbounded is not None:
        return NoPromise()
    if not cost.tight:
        return _envelope(event)
    ceiling = _ceiling(event)
    return ceiling if cost.log_kept == 0 else LossyCurve(kept=math.exp(cost.log_kept), rest=ceiling)


def _ceiling(event: Event) -> AbstractCurve:
    """Return the ceiling of Gaussian and pure parts, approximate ones counted without what they lose."""
    cost = total(event)
    as_gaussian = GaussianCurve(mu=gaussian_mu(event))
    if not cost.pure:
        return as_gaussian
    from accountant.joint_curve import JointCurve

    joint = JointCurve(mu=cost.mu, pure=cost.pure)
    whole_vector = any(isinstance(leaf, LaplaceTopK) for leaf in counted(event))
    return LowestCurve(curves=(joint, as_gaussian)) if whole_vector else joint


def _envelope(event: Event) -> AbstractCurve:
    """Return the ceiling of what the accountants promise at many deltas, where a part is only bounded by a Gaussian."""
    parts = counted(event)
    leaf = next(iter(parts))
    if len(parts) == 1 and isinstance(leaf, SubsampledGaussian):
        from accountant import subsampled

        return subsampled.curve(
            noise_multiplier=per_clip_norm(leaf),
            sampling_rate=leaf.sampling_rate,
            steps=parts[leaf],
            relation=leaf.contract.relation,
        )
    from accountant.envelope_curve import EnvelopeCurve

    pairs = tuple((smallest(event, delta=delta).epsilon, delta) for delta in _DELTAS)
    finite = tuple((epsilon, delta) for epsilon, delta in pairs if math.isfinite(epsilon))
    certain = total(event).log_kept == 0
    return EnvelopeCurve(guarantees=finite or ((0.0, 1.0),), mu=gaussian_mu(event) if certain else None)


_DELTAS = tuple(10.0**-power for power in range(1, 11))
_APPROXIMATE = "the approximate parts alone fail more often than delta"
_TOO_LARGE = "its epsilon is beyond the largest float"
_COUNTS_CHANGE = (
    "a record that changes its label changes the counts that scale the noise of class means, so delta = 1; release "
    "sums and counts (defense sumcount), or claim another relation."
)
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
