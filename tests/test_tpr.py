"""TPR at an FPR: exact counts, whole blocks of ties, and what no skill would reach."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_curve

from attacks.statistics.binomial import clopper_pearson, lower_limit, min_n_for_fpr, upper_limit
from attacks.statistics.no_skill import no_skill_p_value, no_skill_tpr
from attacks.statistics.roc import roc
from attacks.statistics.tpr import (
    allowed_false_positives,
    exact_rate,
    operating_point,
    tpr_at_fpr,
)

T = TypeVar("T")
TIED = st.lists(st.integers(-4, 4), min_size=1, max_size=15)
laws = settings(deadline=None, derandomize=True, max_examples=40)


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def naive_point(members, non_members, allowed):
    """The best (TP, FP) over every threshold, infinity included."""
    points = []
    for threshold in [*members, *non_members, float("inf")]:
        false = sum(o >= threshold for o in non_members)
        if false <= allowed:
            points.append((sum(m >= threshold for m in members), false, threshold))
    return max(points, key=lambda point: (point[0], point[1], -point[2]))


@laws
@given(TIED, TIED, st.integers(0, 16))
def test_the_operating_point_is_the_best_over_every_threshold(members, non_members, allowed):
    true, false, threshold = naive_point(members, non_members, allowed)
    found = operating_point(members, non_members, allowed=allowed)
    assert (found.true_positives, found.false_positives) == (true, false)
    assert found.threshold == (None if threshold == float("inf") else threshold)


@laws
@given(TIED, TIED, st.randoms(use_true_random=False))
def test_row_order_and_increasing_transforms_do_not_matter(members, non_members, random):
    expected = tpr_at_fpr(members, non_members, fpr=0.3)
    random.shuffle(members)
    random.shuffle(non_members)
    moved = tpr_at_fpr(np.exp(members), np.exp(non_members), fpr=0.3)
    assert moved.estimate == expected.estimate
    assert moved.randomised == expected.randomised


@laws
@given(TIED, TIED, st.sampled_from(["0.1", "0.25", "0.5", "0.9"]))
def test_the_randomised_value_is_the_roc_of_scikit_learn_at_just_that_rate(members, non_members, fpr):
    labels = [1] * len(members) + [0] * len(non_members)
    fpr_K, tpr_K, _ = roc_curve(labels, [*members, *non_members], drop_intermediate=False)
    after = int(
        np.searchsorted(fpr_K, float(fpr) * (1 + 1e-12), side="right")
    )  # a vertical stretch counts whole
    before = after - 1
    share = (float(fpr) - fpr_K[before]) / (fpr_K[after] - fpr_K[before])
    expected = tpr_K[before] + share * (tpr_K[after] - tpr_K[before])
    found = tpr_at_fpr(members, non_members, fpr=fpr)
    assert found.randomised == pytest.approx(expected, abs=1e-12)
    if found.estimate.value is not None:
        assert found.estimate.value <= sure(found.randomised) + 1e-12


def test_collinear_points_are_not_dropped():
    # 100 blocks of one member and one non-member: scikit-learn's default keeps only the two corners
    blocks = np.arange(100.0)
    labels = np.repeat([1, 0], 100)
    fpr_K, tpr_K, _ = roc_curve(labels, np.r_[blocks, blocks])
    assert tpr_K[fpr_K <= 0.1][-1] <= 0.01
    assert tpr_at_fpr(blocks, blocks, fpr=0.1).estimate.value == pytest.approx(0.1)


def test_a_block_of_tied_non_members_is_not_admitted_in_part():
    # LeakPro #438: the threshold of a block's first record admits all of it, here 30 % instead of 1 %
    members, non_members = [1.0] * 50 + [0.0] * 50, [1.0] * 30 + [0.0] * 70
    point = sure(tpr_at_fpr(members, non_members, fpr=0.01).confusion)
    assert (point.true_positives, point.false_positives, point.threshold) == (0, 0, None)


def test_every_cell_carries_its_counts():
    found = tpr_at_fpr([3, 2, 2, 1] * 5, [2.5, 1, 0, 0] * 5, fpr=0.25, level=0.9)
    assert (found.allowed, str(found.confusion)) == (5, "TP 15/20, FP 5/20")
    assert sure(found.confusion).threshold == 2.0
    assert (found.estimate.low, found.estimate.high) == clopper_pearson(15, 20, level=0.9)
    assert found.to_dict()["confusion"]["false_positives"] == 5


@pytest.mark.parametrize(("n", "fpr", "needed"), [(99, 0.01, "100"), (100, "0.001", "1000"), (1, 0.5, "2")])
def test_too_few_non_members_cannot_show_a_rate(n, fpr, needed):
    found = tpr_at_fpr(np.arange(5.0), np.zeros(n), fpr=fpr)
    assert found.estimate.value is None
    assert f"at least {needed}" in found.estimate.note
    assert found.estimate.null == 1 / (n + 1)
    assert sure(found.confusion).true_positives == 4


def test_just_enough_non_members_show_a_rate_and_its_coarseness():
    found = tpr_at_fpr(np.arange(5.0), np.zeros(100), fpr=0.01).estimate
    assert found.value == 0.8
    assert found.note == "coarse: only 1 false positive allowed; 1,000 non-members are advised"
    assert "only 2 false positives allowed" in tpr_at_fpr([1.0], np.zeros(200), fpr=0.01).estimate.note
    assert tpr_at_fpr(np.arange(5.0), np.zeros(1000), fpr=0.01).estimate.note == ""


def test_an_empty_class_gives_a_reason():
    assert tpr_at_fpr([], [0.1] * 100, fpr=0.1).estimate.note == "no members"
    assert tpr_at_fpr([0.1], [], fpr=0.1).estimate.value is None


@pytest.mark.parametrize("fpr", [1, 10, 0, 0.0, 1.0, -0.01, "1%", "ten", float("nan"), float("inf")])
def test_a_rate_that_is_no_fraction_is_refused(fpr):
    with pytest.raises(ValueError, match=r"0\.01"):
        exact_rate(fpr)


@pytest.mark.parametrize("fpr", [0.1, "0.1", "1/10", Fraction(1, 10), Decimal("0.1"), np.float64(0.1)])
def test_a_rate_is_read_as_it_was_written(fpr):
    assert exact_rate(fpr) == Fraction(1, 10)


@laws
@given(st.integers(1, 999), st.integers(1, 5000))
def test_allowed_false_positives_are_a_floor_in_whole_numbers(per_mille, n):
    assert allowed_false_positives(n, fpr=per_mille / 1000) == per_mille * n // 1000


def test_null_mean_is_reached_by_chance():
    rng = np.random.default_rng(0)
    reached = [operating_point(rng.normal(size=50), rng.normal(size=100), allowed=2).tpr for _ in range(600)]
    assert no_skill_tpr(100, allowed=2) == pytest.approx(3 / 101)
    assert np.mean(reached) == pytest.approx(3 / 101, abs=3 * np.std(reached) / np.sqrt(600))
    assert np.mean(reached) > 0.02 + 3 * np.std(reached) / np.sqrt(600)  # not the rate asked for


def test_p_value_is_the_share_of_all_orders():
    m, n, allowed = 4, 5, 1
    orders = list(combinations(range(m + n), m))  # which ranks, from the top, are members
    reached = []
    for order in orders:
        non_members = [rank for rank in range(m + n) if rank not in order]
        reached.append(sum(rank < non_members[allowed] for rank in order))
    for true in range(m + 1):
        expected = np.mean([count >= true for count in reached])
        assert no_skill_p_value(true, m, allowed=allowed, n_non_members=n) == pytest.approx(expected)


@given(st.integers(1, 400), st.integers(1, 400), st.data())
@settings(deadline=None, derandomize=True, max_examples=40)
def test_p_value_is_the_beta_binomial_tail(m, n, data):
    allowed = data.draw(st.integers(0, n - 1))
    true = data.draw(st.integers(0, m))
    expected = stats.betabinom.pmf(np.arange(true, m + 1), m, allowed + 1, n - allowed).sum()
    found = no_skill_p_value(true, m, allowed=allowed, n_non_members=n)
    assert found == pytest.approx(expected, rel=1e-9)


def test_p_values_of_chance_are_seldom_small_even_under_ties():
    rng = np.random.default_rng(1)
    found = [
        tpr_at_fpr(rng.integers(0, 30, 100), rng.integers(0, 30, 100), fpr=0.1).estimate.p_value
        for _ in range(200)
    ]
    assert np.mean(np.array(found) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


@laws
@given(TIED, TIED)
def test_the_roc_has_all_points_and_both_corners(members, non_members):
    labels = [1] * len(members) + [0] * len(non_members)
    fpr_K, tpr_K, threshold_K = roc_curve(labels, [*members, *non_members], drop_intermediate=False)
    curve = roc(members, non_members)
    assert np.allclose(curve.true_positives_K / len(members), tpr_K)
    assert np.allclose(curve.false_positives_K / len(non_members), fpr_K)
    assert curve.threshold_K.tolist() == threshold_K.tolist()
    assert (curve.true_positives_K[0], curve.false_positives_K[0]) == (0, 0)
    assert (curve.true_positives_K[-1], curve.false_positives_K[-1]) == (len(members), len(non_members))


@given(st.integers(1, 300), st.data(), st.floats(0.5, 0.999))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_one_sided_limits_have_just_their_tail(trials, data, level):
    successes = data.draw(st.integers(0, trials))
    low, high = lower_limit(successes, trials, level=level), upper_limit(successes, trials, level=level)
    assert low <= successes / trials <= high
    if successes:
        assert stats.binom.sf(successes - 1, trials, low) == pytest.approx(1 - level, rel=1e-9)
    if successes < trials:
        assert stats.binom.cdf(successes, trials, high) == pytest.approx(1 - level, rel=1e-9)


def test_clopper_pearson_covers_every_proportion():
    trials = 40
    limits = np.array([clopper_pearson(k, trials) for k in range(trials + 1)])
    for truth in np.linspace(0.01, 0.99, 99):
        inside = (limits[:, 0] <= truth) & (truth <= limits[:, 1])
        assert stats.binom.pmf(np.arange(trials + 1), trials, truth)[inside].sum() >= 0.95


@pytest.mark.parametrize(("level", "fpr"), [(0.95, 0.01), (0.75, 0.5), (0.875, 0.5), (0.99, 0.37)])
def test_fewest_clean_non_members_just_certify(level, fpr):
    n = min_n_for_fpr(fpr, level=level)
    assert (1 - fpr) ** n <= (1 - level) * (1 + 1e-12)
    assert n == 1 or (1 - fpr) ** (n - 1) > 1 - level


@pytest.mark.parametrize(("successes", "trials"), [(-1, 10), (11, 10), (0, 0)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(ValueError, match=r"successes|trials"):
        clopper_pearson(successes, trials)
