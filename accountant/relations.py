r"""How far one record, or one client, can move what is released, under each neighbouring relation.

In clip norms R, for the sum of records behind each released vector (a mean of n records has that over n):

===================  ===========  =========  ==========  ========
query                same label   any label  add/remove  zero out
===================  ===========  =========  ==========  ========
class means          2            2 sqrt 2   undefined   1
class sums           2            2          1           1
sums and counts      2            2          sqrt 2      sqrt 2
sums of moments      of their weights: :mod:`accountant.moments`, over the weight of the sum
one sum              2            2          1           1
scores of range H    the whole range, whatever the relation
===================  ===========  =========  ==========  ========

* Means, any label: noise ``sigma 2R/n_c`` stands against a move of up to ``2R/n_c`` in *two* classes; sqrt 2 is what
  that tends to for large classes, ``sqrt(1 + (n/(n+1))^2)`` for two of n (:mod:`accountant.counterexamples`, E2). It
  holds the noise scales fixed although the counts change: assumption A3 is broken then.
* Means, add/remove: the count itself changes, so no fixed noise covers the mean; release sums and counts instead.
* Sums and counts ``(sum_i z_i, R n_c)``: a label change moves two blocks by ``(z, R)`` each, of length sqrt 2 R at
  most, together 2R, which a record replaced by its negative reaches too. Adding a record moves one block.
* Zero out: the record contributes nothing, but the sizes that scale the noise stay.

A client's whole update, clipped to length R in all, is not about records: to replace all of the client's data by any
other moves it by up to 2 R (its negative is in the ball too); to zero the client out, which then sends what it would
without having trained, by up to R. Nothing else that is listed here has a sensitivity for whole clients.

Source: corrections to the accounting analysis, (sum, R count); VPDR, Eq. 5 (same label)
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch

from accountant.contract import Query, Relation
from accountant.events import (
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    Leaf,
    NonPrivate,
    Repeated,
    SubsampledGaussian,
    TopK,
)
from accountant.moments import RELATIONS, moments_sensitivity

_ROOT2 = math.sqrt(2)
_REACH: dict[Query, dict[Relation, float]] = {
    Query.CLASS_MEANS: {
        Relation.REPLACE_SAME_LABEL: 2.0,
        Relation.REPLACE_ANY_LABEL: 2 * _ROOT2,
        Relation.ZERO_OUT: 1.0,
    },
    Query.CLASS_SUMS: {
        Relation.REPLACE_SAME_LABEL: 2.0,
        Relation.REPLACE_ANY_LABEL: 2.0,
        Relation.ADD_REMOVE: 1.0,
        Relation.ZERO_OUT: 1.0,
    },
    Query.SUMS_AND_COUNTS: {
        Relation.REPLACE_SAME_LABEL: 2.0,
        Relation.REPLACE_ANY_LABEL: 2.0,
        Relation.ADD_REMOVE: _ROOT2,
        Relation.ZERO_OUT: _ROOT2,
    },
    Query.RECORD_SUM: {
        Relation.REPLACE_SAME_LABEL: 2.0,
        Relation.REPLACE_ANY_LABEL: 2.0,
        Relation.ADD_REMOVE: 1.0,
        Relation.ZERO_OUT: 1.0,
    },
    Query.CLIENT_UPDATE: {Relation.REPLACE_CLIENT: 2.0, Relation.ZERO_OUT_CLIENT: 1.0},
    Query.BOUNDED_SCORES: dict.fromkeys(Relation, 1.0),
}


def defined(query: Query, relation: Relation) -> bool:
    """Return whether a query has a sensitivity under a relation."""
    return relation in (RELATIONS if query is Query.MOMENTS else _REACH[query])


def reach(query: Query, relation: Relation, weights: Sequence[float] = ()) -> float:
    """Return how many clip norms one record can move the sums behind a query by, over all vectors, in l2 norm.

    Args:
        query: what noise was added to.
        relation: which data sets are neighbours.
        weights: of sums of moments.

    Raises:
        ValueError: no finite number holds for this query and relation.

    >>> reach(Query.SUMS_AND_COUNTS, Relation.REPLACE_ANY_LABEL)
    2.0
    """
    if query is Query.MOMENTS:
        return moments_sensitivity(weights, relation) / weights[1]
    known = _REACH[query]
    if relation not in known and (relation.about_clients or query is Query.CLIENT_UPDATE):
        raise ValueError(
            f"{query.value} have no sensitivity under {relation.value!r}: one is about records and the other about "
            "whole clients; claim a relation of the same kind."
        )
    if relation not in known:
        raise ValueError(
            f"{query.value} have no sensitivity under {relation.value!r}: their count changes with the record; "
            "release sums and counts (defense sumcount), or claim another relation."
        )
    return known[relation]


def per_clip_norm(leaf: SubsampledGaussian) -> float:
    """Return noise standard deviation / clip norm, which is what accountants of DP-SGD call the noise multiplier."""
    return leaf.noise_multiplier * reach(Query.RECORD_SUM, leaf.contract.relation)


def restated(event: Event, relation: Relation) -> Event:
    """Return the same releases, with every cost stated for another neighbouring relation.

    Raises:
        ValueError: a part does not say what it added noise to, or has no sensitivity under that relation.

    >>> from accountant.contract import Contract
    >>> made = Gaussian(noise_multiplier=4.0, contract=Contract(query=Query.SUMS_AND_COUNTS))
    >>> restated(made, Relation.ADD_REMOVE).noise_multiplier
    5.65685424949238
    """
    if isinstance(event, Repeated):
        return replace(event, event=restated(event.event, relation))
    if isinstance(event, Composed):
        return replace(event, events=tuple(restated(part, relation) for part in event.events))
    if not isinstance(event, Leaf) or event.contract.relation is relation:
        return event
    return replace(_moved(event, relation), contract=replace(event.contract, relation=relation))


@singledispatch
def _moved(leaf: Leaf, relation: Relation) -> Leaf:
    """Return a leaf with its numbers changed from the relation of its contract to another one."""
    if leaf.contract.query is Query.BOUNDED_SCORES:
        return leaf  # the whole range was paid for
    raise ValueError(
        f"{type(leaf).__name__} was stated for {leaf.contract.relation.value!r} only, and nothing is known of it under "
        f"{relation.value!r}; state its cost there."
    )


@_moved.register(NonPrivate)
def _non_private(leaf: NonPrivate, relation: Relation) -> Leaf:
    return leaf


@_moved.register(TopK)
def _selection(leaf: TopK, relation: Relation) -> Leaf:
    # the whole range was paid for, but what moves one way when a record is added moves both ways when it is replaced
    return replace(leaf, monotone=False)


@_moved.register(Gaussian)
def _gaussian(leaf: Gaussian, relation: Relation) -> Leaf:
    return replace(leaf, noise_multiplier=leaf.noise_multiplier * _change(leaf, relation))


@_moved.register(GroupGaussian)
def _group_gaussian(leaf: GroupGaussian, relation: Relation) -> Leaf:
    if leaf.contract.query in (Query.SUMS_AND_COUNTS, Query.MOMENTS):
        raise ValueError(
            f"groups of {leaf.contract.query} have no one sensitivity: which group holds the count is not "
            f"declared; state the noise for {relation.value!r} itself."
        )
    change = _change(leaf, relation)
    return replace(leaf, noise_multipliers=tuple(sigma * change for sigma in leaf.noise_multipliers))


@_moved.register(SubsampledGaussian)
def _subsampled(leaf: SubsampledGaussian, relation: Relation) -> Leaf:
    return replace(leaf, noise_multiplier=leaf.noise_multiplier * _change(leaf, relation))


def _change(leaf: Leaf, relation: Relation) -> float:
    """Return the factor on a noise multiplier: sensitivity of the contract's relation / of the other one."""
    query = leaf.contract.query
    if query is None:
        raise ValueError(
            f"{type(leaf).__name__} does not declare what noise was added to, so its cost under {relation.value!r} is "
            "not known; set query in its contract."
        )
    weights = leaf.contract.weights
    return reach(query, leaf.contract.relation, weights) / reach(query, relation, weights)
