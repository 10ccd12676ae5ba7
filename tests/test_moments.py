"""How far one record moves sums of moments: a search finds nothing further, and something as far."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from accountant.accountants import smallest
from accountant.claims import claim
from accountant.contract import Contract, Query, Relation
from accountant.events import Gaussian, GroupGaussian, from_dict, to_dict
from accountant.moments import RELATIONS, moments_sensitivity
from accountant.relations import reach, restated

SAME, ANY, ADD, ZERO = RELATIONS
WEIGHTS = [
    (1.0, 1.0, 1.0, 0.0, 0.0),
    (1.0, 1.0, 0.5, 0.0, 0.0),
    (0.5, 1.0, 0.0, 0.0, 0.0),
    (1.0, 1.0, 2.0, 0.3, 0.2),
    (2.0, 0.1, 1.0, 0.0, 1.0),
    (1.0, 1.0, 0.75, 0.5, 0.5),
]


def query(
    z_d: np.ndarray, label: int, uncertain: tuple[float, float], weights: tuple[float, ...]
) -> np.ndarray:
    """Return what one record of clip norm 1 adds to the two blocks of classes 0 and 1."""
    a0, a1, a2, a3, a4 = weights
    block = np.concatenate([[a0], a1 * z_d, a2 * z_d**2, [a3 * uncertain[0], a4 * uncertain[1]]])
    out = np.zeros((2, len(block)))
    out[label] = block
    return out


def inside(z_d: np.ndarray) -> np.ndarray:
    return z_d / max(1.0, float(np.linalg.norm(z_d)))


def farthest(weights: tuple[float, ...], labels: tuple[int, int], *, dim: int, tries: int) -> float:
    """Return the longest move between two records that a search finds; uncertainties are at their ends."""
    rng, found = np.random.default_rng(0), 0.0
    ends = ((1.0, 1.0), (0.0, 0.0)) if labels[0] == labels[1] else ((1.0, 1.0), (1.0, 1.0))

    def move(x: np.ndarray) -> float:
        one, other = inside(x[:dim]), inside(x[dim:])
        moved = query(one, labels[0], ends[0], weights) - query(other, labels[1], ends[1], weights)
        return -float(np.square(moved).sum())

    for _ in range(tries):
        found = max(found, -minimize(move, 1.5 * rng.standard_normal(2 * dim)).fun)
    return math.sqrt(found)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
@pytest.mark.parametrize("dim", [2, 3])
def test_a_search_reaches_the_same_label_bound_and_goes_no_further(weights, dim):
    found = farthest(weights, (0, 0), dim=dim, tries=30)
    assert found == pytest.approx(moments_sensitivity(weights, SAME), rel=1e-5)
    assert found <= moments_sensitivity(weights, SAME) * (1 + 1e-9)


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_a_search_over_both_kinds_of_replacement_reaches_the_any_label_bound(weights):
    found = max(farthest(weights, labels, dim=2, tries=30) for labels in ((0, 0), (0, 1)))
    assert found == pytest.approx(moments_sensitivity(weights, ANY), rel=1e-5)
    assert found <= moments_sensitivity(weights, ANY) * (1 + 1e-9)


def test_neither_replacement_is_always_the_larger_one():
    assert moments_sensitivity((0.5, 1.0, 0.0, 0.0, 0.0), ANY) == pytest.approx(2.0)
    assert math.sqrt(2) * math.hypot(0.5, 1.0) == pytest.approx(1.58, abs=2e-3)
    assert moments_sensitivity((1.0, 1.0, 1.0, 0.0, 0.0), ANY) == pytest.approx(math.sqrt(6))


@settings(max_examples=200)
@given(
    st.integers(0, 9999),
    st.tuples(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0, 5), st.floats(0, 5), st.floats(0, 5)),
    st.integers(1, 6),
    st.sampled_from([1, 2, 5]),
)
def test_no_pair_of_records_is_further_apart(seed, weights, dim, sparse):
    rng = np.random.default_rng(seed)
    z, y = (inside(3 * rng.standard_normal(dim) * (rng.random(dim) < 1 / sparse)) for _ in range(2))
    u, v = rng.random(2), rng.random(2)
    nothing = np.zeros((2, 2 * dim + 3))
    here = query(z, 0, (u[0], u[1]), weights)
    moves = {
        SAME: here - query(y, 0, (v[0], v[1]), weights),
        ANY: here - query(y, 1, (v[0], v[1]), weights),
        ADD: here - nothing,
        ZERO: here - nothing,
    }
    for relation, moved in moves.items():
        assert np.linalg.norm(moved) <= moments_sensitivity(weights, relation) * (1 + 1e-12)
    assert moments_sensitivity(weights, SAME) <= moments_sensitivity(weights, ANY)


def test_adding_a_record_on_an_axis_reaches_its_bound():
    moved = query(np.array([1.0, 0.0, 0.0]), 0, (1.0, 1.0), WEIGHTS[3])
    assert np.linalg.norm(moved) == pytest.approx(moments_sensitivity(WEIGHTS[3], ADD), rel=1e-15)


def test_without_squares_and_uncertainties_it_is_sums_and_counts():
    for relation in RELATIONS:
        wanted = reach(Query.SUMS_AND_COUNTS, relation)
        assert reach(Query.MOMENTS, relation, (1.0, 1.0, 0.0, 0.0, 0.0)) == pytest.approx(wanted, rel=1e-15)


@given(st.floats(1e-3, 1e3), st.sampled_from(WEIGHTS), st.sampled_from(RELATIONS))
def test_only_ratios_of_weights_matter(scale, weights, relation):
    scaled = tuple(scale * a for a in weights)
    found, wanted = reach(Query.MOMENTS, relation, scaled), reach(Query.MOMENTS, relation, weights)
    assert found == pytest.approx(wanted, rel=1e-12)


# ---------------------------------------------------------------------- contracts


def event(weights: tuple[float, ...] = WEIGHTS[1], relation: Relation = ANY) -> Gaussian:
    contract = Contract(relation=relation, query=Query.MOMENTS, weights=weights)
    return Gaussian(noise_multiplier=3.0, contract=contract)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_release_is_restated_for_other_neighbours_and_written_down(relation):
    there = restated(event(), relation)
    assert isinstance(there, Gaussian)
    std = 3.0 * moments_sensitivity(WEIGHTS[1], ANY)
    assert there.noise_multiplier * moments_sensitivity(WEIGHTS[1], relation) == pytest.approx(std)
    back = restated(there, ANY)
    assert isinstance(back, Gaussian)
    assert back.noise_multiplier == pytest.approx(3.0, rel=1e-15)
    assert from_dict(to_dict(event())) == event()
    assert smallest(there, delta=1e-5).epsilon == pytest.approx(
        claim(event(), delta=1e-5, relation=relation).epsilon
    )


def test_weights_that_are_not_declared_are_not_assumed():
    broken = {b.id: b.reason for b in claim(event(()), delta=1e-5).broken}
    assert "what the moments were multiplied by is not declared" in broken["A2"]
    with pytest.raises(ValueError, match=r"weights=\(\): sums of moments need five"):
        restated(event(()), ADD)


@pytest.mark.parametrize(
    "weights",
    [
        (1.0, 1.0),
        (0.0, 1.0, 1.0, 0.0, 0.0),
        (1.0, 0.0, 1.0, 0.0, 0.0),
        (1.0, 1.0, -1.0, 0.0, 0.0),
        (1.0, 1.0, math.nan, 0.0, 0.0),
        (1.0, 1.0, math.inf, 0.0, 0.0),
    ],
)
def test_other_weights_are_refused(weights):
    with pytest.raises(ValueError, match="sums of moments need five, of count, sum, squares"):
        moments_sensitivity(weights, ADD)


def test_groups_of_moments_have_no_one_sensitivity():
    contract = Contract(query=Query.MOMENTS, weights=WEIGHTS[0], relation=ANY)
    with pytest.raises(ValueError, match="groups of sums of moments of classes have no one sensitivity"):
        restated(GroupGaussian(noise_multipliers=(1.0, 2.0), contract=contract), ADD)
