"""What must hold for an epsilon to be a promise, and what a contract says about it.

A claim is a number only under assumptions. Each is listed with a check that reads a
:class:`~accountant.contract.Contract` and says in one sentence why the assumption is broken; what is not
declared counts as broken. Assumptions about the whole run (A7, A8, A10) cannot be read off one release:
they are stated, not checked.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from accountant.events import ApproximateDP, BoundedRange, Leaf, NonPrivate, PureDP, TopK
from accountant.relations import defined


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One condition of a claim.

    Attributes:
        id: short name, as printed in tables.
        statement: what must hold.
        reason: why a contract breaks it, in one sentence; None if it does not.
    """

    id: str
    statement: str
    reason: Callable[[Contract], str | None]


def _stated(contract: Contract) -> None:
    """Break nothing: the assumption is about more than one contract."""


def _relation(contract: Contract) -> str | None:
    about_clients = contract.query is Query.CLIENT_UPDATE
    if contract.query is not None and about_clients is not contract.relation.about_clients:
        return f"{contract.query.value} have no sensitivity under {contract.relation.value!r}"
    if contract.query is Query.MOMENTS and not contract.weights:
        return (
            "what the moments were multiplied by is not declared, so how far a record moves them is not known"
        )
    if contract.query is not None and not defined(contract.query, contract.relation):
        return (
            f"{contract.query.value} have no sensitivity under {contract.relation.value!r}: their count changes with "
            "the record"
        )
    return None


def _encoder(contract: Contract) -> str | None:
    if contract.encoder is None:
        return "what the encoder was computed from is not declared"
    if contract.encoder is DependsOn.PRIVATE_STATE:
        return (
            "the encoder depends on private state, so one record moves every vector it encodes and the "
            "sensitivity is the whole range"
        )
    return None


def _counts(contract: Contract) -> str | None:
    if contract.counts is None:
        return "whether record counts are public is not declared"
    if contract.counts is Counts.PRIVATE:
        return "record counts are private, so a noise scale or weight that follows them gives them away"
    changing = contract.relation in (Relation.REPLACE_ANY_LABEL, Relation.ADD_REMOVE)
    if changing and (contract.counts is Counts.PUBLIC or contract.query is Query.CLASS_MEANS):
        return (
            f"neighbours under {contract.relation.value!r} differ in their counts, so these cannot be public; "
            "release sums with fixed noise and declare the counts as not used"
        )
    return None


def _clip(contract: Contract) -> str | None:
    return "no clip norm is declared" if contract.clip_norm is None else None


def _assignment(contract: Contract) -> str | None:
    if contract.assignment is None:
        return "how records were assigned to released vectors is not declared"
    if contract.assignment is DependsOn.PRIVATE_STATE:
        return (
            "records are assigned to vectors by private state, so one record can move others between vectors "
            "and no bound by the group size holds"
        )
    return None


def _hyperparameters(contract: Contract) -> str | None:
    if contract.hyperparameters is None:
        return "what the hyper-parameters were chosen from is not declared"
    if contract.hyperparameters is DependsOn.PRIVATE_STATE:
        return "clip norm, noise or rounds were chosen from private data, which no event accounts for"
    if contract.hyperparameters is DependsOn.PAST_OUTPUTS:
        return "clip norm, noise or rounds were chosen from earlier outputs, which needs a privacy filter"
    return None


def _fresh_noise(contract: Contract) -> str | None:
    if contract.fresh_noise is None:
        return "whether every release draws fresh noise is not declared"
    return None if contract.fresh_noise else "noise is reused, so differences of releases are free of it"


ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        id="A1",
        statement="the encoder is a function of public data and of earlier private outputs",
        reason=_encoder,
    ),
    Assumption(
        id="A2",
        statement="the sensitivity was computed for the neighbouring relation that the claim names",
        reason=_relation,
    ),
    Assumption(
        id="A3",
        statement="record counts are public, the same for neighbours, or neither released nor used",
        reason=_counts,
    ),
    Assumption(
        id="A4",
        statement="every record is clipped on the very vectors that are averaged, group by group if noise is",
        reason=_clip,
    ),
    Assumption(
        id="A5",
        statement="which vector a record contributes to does not depend on other private records",
        reason=_assignment,
    ),
    Assumption(
        id="A6",
        statement="clip norm, noise, groups and rounds were fixed without the private data",
        reason=_hyperparameters,
    ),
    Assumption(id="A7", statement="every release of the run is counted", reason=_stated),
    Assumption(
        id="A8", statement="epsilon comes from an exact or an upper-bounding accountant", reason=_stated
    ),
    Assumption(id="A9", statement="every release draws fresh, independent noise", reason=_fresh_noise),
    Assumption(id="A10", statement="nothing else that depends on the data is uploaded", reason=_stated),
)

_BY_ID = {assumption.id: assumption for assumption in ASSUMPTIONS}
_RANK = {assumption.id: rank for rank, assumption in enumerate(ASSUMPTIONS)}


def named(id: str) -> Assumption:
    """Return an assumption by its id.

    Raises:
        ValueError: there is none of that id.
    """
    if id not in _BY_ID:
        raise ValueError(f"assumption {id!r} is unknown; known are {', '.join(_BY_ID)}.")
    return _BY_ID[id]


@singledispatch
def needed(leaf: Leaf) -> tuple[str, ...]:
    """Return the ids of the assumptions that a leaf's cost rests on; all of them unless it says less."""
    spared = _SPARED.get(leaf.contract.query, ())
    return tuple(id for id in _BY_ID if id not in spared)


# a client's update is clipped whole, whatever it was computed from; a sum over all records knows no classes
_SPARED: dict[Query | None, tuple[str, ...]] = {
    Query.RECORD_SUM: ("A3", "A5"),
    Query.CLIENT_UPDATE: ("A1", "A3", "A5"),
}


@needed.register(PureDP)
@needed.register(ApproximateDP)
@needed.register(BoundedRange)
def _guarantee(leaf: PureDP | ApproximateDP | BoundedRange) -> tuple[str, ...]:
    # It is stated for the mechanism as a whole, whatever the vectors behind it.
    return ("A2", "A6", "A7", "A8", "A9", "A10")


@needed.register(TopK)
def _selection(leaf: TopK) -> tuple[str, ...]:
    # It pays for the whole range of every score, whatever moved it: an encoder, a count, a label.
    return ("A6", "A7", "A8", "A9", "A10")


@needed.register(NonPrivate)
def _non_private(leaf: NonPrivate) -> tuple[str, ...]:
    return ()


def broken(contract: Contract, ids: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs (id, reason) of the assumptions among ``ids`` that a contract breaks, in order."""
    pairs = ((id, named(id).reason(contract)) for id in in_order(ids))
    return tuple((id, reason) for id, reason in pairs if reason is not None)


def in_order(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct ids, A1 first."""
    return tuple(sorted(set(ids), key=lambda id: _RANK[named(id).id]))
