import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import subsampled
from accountant.bound import Bound
from accountant.claims import claim, curve, neighbours, under_relations
from accountant.contract import Contract, DependsOn, Query, Relation
from accountant.events import (
    Composed,
    Gaussian,
    GroupGaussian,
    LaplaceTopK,
    NonPrivate,
    PureDP,
    Repeated,
    SubsampledGaussian,
)
from accountant.relations import reach, restated
from privkit.clip import clip_to_ball

SAME, ANY, ADD, ZERO, CLIENT, NO_CLIENT = Relation


def made(query: Query, relation: Relation = SAME) -> Gaussian:
    return Gaussian(noise_multiplier=4.0, contract=Contract(query=query, relation=relation))


def blocks(z: tuple[float, float], label: int, *, with_count: bool) -> np.ndarray:
    """What one record of clip norm 1 adds to (sum, R count) of each of two classes."""
    rows = np.zeros((2, 3))
    rows[label] = (*z, 1.0 if with_count else 0.0)
    return rows


UNIT = [(math.cos(a), math.sin(a)) for a in np.linspace(0, 2 * math.pi, 24, endpoint=False)] + [(0.0, 0.0)]


@pytest.mark.parametrize(("query", "with_count"), [(Query.SUMS_AND_COUNTS, True), (Query.CLASS_SUMS, False)])
def test_no_pair_of_records_moves_the_release_further_and_some_pair_that_far(
    query: Query, with_count: bool
) -> None:
    nothing = np.zeros((2, 3))
    records = [(z, label) for z in UNIT for label in (0, 1)]
    worst = dict.fromkeys((SAME, ANY, ADD, ZERO), 0.0)
    for (z, a), (y, b) in itertools.product(records, records):
        moved = blocks(z, a, with_count=with_count) - blocks(y, b, with_count=with_count)
        worst[ANY] = max(worst[ANY], float(np.linalg.norm(moved)))
        if a == b:
            worst[SAME] = max(worst[SAME], float(np.linalg.norm(moved)))
    for z, a in records:
        alone = float(np.linalg.norm(blocks(z, a, with_count=with_count) - nothing))
        worst[ADD] = worst[ZERO] = max(worst[ADD], alone)
    for relation, value in worst.items():
        assert reach(query, relation) == pytest.approx(value, rel=1e-9)


def test_the_same_release_costs_differently_under_each_relation() -> None:
    found = under_relations(Repeated(event=made(Query.CLASS_MEANS), count=4), delta=1e-5)
    at = {relation: value for relation, value in found.items() if isinstance(value, float)}
    assert at[ZERO] < at[SAME]
    assert "delta = 1" in str(found[ANY])
    assert "defense sumcount" in str(found[ADD])
    sums = under_relations(Repeated(event=made(Query.SUMS_AND_COUNTS), count=4), delta=1e-5)
    assert sums[ANY] == sums[SAME] == at[SAME]
    added = sums[ADD]
    assert isinstance(added, float)
    assert added < at[SAME]


def test_a_label_change_costs_what_the_analysis_says() -> None:
    event = Gaussian(noise_multiplier=3.7306316348159418, contract=Contract(query=Query.CLASS_MEANS))
    assert claim(event, delta=1e-5, relation=ANY).epsilon == pytest.approx(1.46517, rel=1e-5)
    assert "A3" in {broken.id for broken in claim(event, delta=1e-5, relation=ANY).broken}


def test_replacing_costs_twice_what_adding_does_for_a_sum() -> None:
    # dp-accounting: REPLACE_ONE with sigma = 1 per clip norm is 9.99726 by PLD, and 4.73 by its RDP accountant
    per_clip_norm = Gaussian(noise_multiplier=1.0, contract=Contract(query=Query.RECORD_SUM, relation=ADD))
    assert claim(per_clip_norm, delta=1e-5, relation=SAME).epsilon == pytest.approx(9.99726, rel=1e-6)


OF_RECORDS = [q for q in Query if q not in (Query.CLASS_MEANS, Query.CLIENT_UPDATE, Query.MOMENTS)]


@given(st.sampled_from(OF_RECORDS), st.sampled_from([SAME, ANY, ADD, ZERO]))
def test_there_and_back_is_the_same_release(query: Query, relation: Relation) -> None:
    event = Composed(
        events=(
            made(query),
            GroupGaussian(noise_multipliers=(2.0, 3.0), contract=Contract(query=Query.CLASS_SUMS)),
            LaplaceTopK(k=1, dim=3, score_bound=1.0, scale=9.0),
            PureDP(epsilon=0.1, contract=Contract(query=Query.BOUNDED_SCORES)),
            NonPrivate(),
        )
    )
    back = restated(restated(event, relation), SAME)
    assert isinstance(back, Composed)
    for leaf, before in zip(back.events, event.events, strict=True):
        if isinstance(leaf, Gaussian) and isinstance(before, Gaussian):
            assert leaf.noise_multiplier == pytest.approx(before.noise_multiplier, rel=1e-15)
        if isinstance(leaf, GroupGaussian) and isinstance(before, GroupGaussian):
            assert leaf.noise_multipliers == pytest.approx(before.noise_multipliers, rel=1e-15)
        if isinstance(leaf, LaplaceTopK | PureDP | NonPrivate):
            assert leaf == before


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Gaussian(noise_multiplier=1.0), "does not declare what noise was added to"),
        (PureDP(epsilon=1.0), "PureDP was stated for 'replace one record, same label' only"),
        (made(Query.CLASS_MEANS), "have no sensitivity under 'add or remove one record'"),
    ],
)
def test_what_is_not_known_under_a_relation_is_refused(event: Gaussian | PureDP, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        claim(event, delta=1e-5, relation=ADD)


def test_replacing_a_record_of_a_sample_costs_more_than_adding_one_and_less_than_without_sampling() -> None:
    contract = Contract(query=Query.RECORD_SUM, relation=ADD)
    step = SubsampledGaussian(noise_multiplier=2.0, sampling_rate=0.1, contract=contract)
    added, replaced = claim(step, delta=1e-5), claim(step, delta=1e-5, relation=SAME)
    assert added.epsilon < replaced.epsilon
    assert replaced.epsilon == pytest.approx(0.460, abs=2e-3)  # by dp-accounting's dominating pair
    assert replaced.epsilon < claim(Gaussian(noise_multiplier=1.0), delta=1e-5).epsilon
    assert replaced.bound is added.bound is Bound.UPPER
    ceiling = curve(restated(Repeated(event=step, count=20), SAME))
    by_hand = subsampled.curve(noise_multiplier=2.0, sampling_rate=0.1, steps=20, relation=SAME)
    assert [ceiling.tpr(fpr) for fpr in (0.01, 0.1)] == [by_hand.tpr(fpr) for fpr in (0.01, 0.1)]


def test_a_label_change_alters_the_counts_behind_means_so_no_epsilon_holds() -> None:
    under = neighbours(made(Query.CLASS_MEANS), delta=1e-5)[ANY]
    assert under.epsilon is None
    assert under.at_fixed_counts == claim(made(Query.CLASS_MEANS), delta=1e-5, relation=ANY).epsilon
    assert "delta = 1; release sums and counts" in under.reason
    assert claim(made(Query.CLASS_MEANS), delta=1e-5, relation=ANY).bound is Bound.UPPER
    assert {b.id for b in claim(made(Query.CLASS_MEANS, ADD), delta=1e-5).broken} >= {"A2", "A3"}


def test_groups_of_sums_and_counts_are_not_restated() -> None:
    groups = GroupGaussian(noise_multipliers=(10.0, 2.0), contract=Contract(query=Query.SUMS_AND_COUNTS))
    with pytest.raises(ValueError, match="which group holds the count is not declared"):
        restated(groups, ADD)


# ---------------------------------------------------------------------- whole clients


@given(
    st.lists(st.floats(-9, 9), min_size=3, max_size=3),
    st.lists(st.floats(-9, 9), min_size=3, max_size=3),
    st.floats(0.1, 3.0),
)
def test_no_two_clients_are_farther_apart_than_twice_the_clip_and_a_change_and_its_negative_are(
    one, other, norm
):
    a, b = (clip_to_ball(np.array([v]), norm=norm)[0] for v in (one, other))
    allowed = norm * reach(Query.CLIENT_UPDATE, CLIENT)
    assert np.linalg.norm(a - b) <= allowed * (1 + 1e-12)
    assert np.linalg.norm(a) <= norm * reach(Query.CLIENT_UPDATE, NO_CLIENT) * (1 + 1e-12)
    if np.linalg.norm(one) > norm:
        assert np.linalg.norm(a - clip_to_ball(-np.array([one]), norm=norm)[0]) == pytest.approx(allowed)


@pytest.mark.parametrize("query", list(Query))
@pytest.mark.parametrize("relation", list(Relation))
def test_records_and_clients_are_never_mixed(query: Query, relation: Relation) -> None:
    """Only what costs the same under every relation, because its whole range was paid for, is in both kinds."""
    of_clients = query is Query.CLIENT_UPDATE
    weights = (1.0,) * 5 if query is Query.MOMENTS else ()
    if query is Query.BOUNDED_SCORES or of_clients is relation.about_clients:
        return
    with pytest.raises(ValueError, match="have no sensitivity under"):
        reach(query, relation, weights)
    leaf = Gaussian(noise_multiplier=1.0, contract=Contract(query=query, relation=relation, weights=weights))
    assert "A2" in {found.id for found in claim(leaf, delta=1e-5).broken}


def test_a_client_that_is_zeroed_out_costs_half_of_one_that_is_replaced() -> None:
    found = neighbours(made(Query.CLIENT_UPDATE, CLIENT), delta=1e-5)
    assert set(found) == {CLIENT, NO_CLIENT}
    epsilon = {relation: under.epsilon for relation, under in found.items()}
    whole = claim(Gaussian(noise_multiplier=8.0), delta=1e-5).epsilon
    assert epsilon[NO_CLIENT] == pytest.approx(whole, rel=1e-12)
    assert epsilon[CLIENT] == pytest.approx(claim(Gaussian(noise_multiplier=4.0), delta=1e-5).epsilon)


def test_a_clients_update_is_covered_whatever_its_encoder_was_computed_from() -> None:
    contract = Contract(
        relation=CLIENT,
        query=Query.CLIENT_UPDATE,
        clip_norm=1.0,
        encoder=DependsOn.PRIVATE_STATE,
        hyperparameters=DependsOn.PUBLIC,
        fresh_noise=True,
    )
    found = claim(Gaussian(noise_multiplier=4.0, contract=contract), delta=1e-5)
    assert found.covered
    assert not {"A1", "A3", "A5"} & set(found.needs)
    assert {"A2", "A4", "A6", "A7", "A8", "A9", "A10"} <= set(found.needs)
