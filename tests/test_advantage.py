"""Membership advantage: what chance reaches at the best threshold, and an honest value at another one."""

from itertools import combinations
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from attacks.statistics import smirnov
from attacks.statistics.advantage import held_out_advantage, max_advantage
from attacks.statistics.binomial import clopper_pearson

T = TypeVar("T")
SIZES = [(1, 1), (1, 4), (3, 3), (4, 2), (5, 4)]


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def every_order(m, n):
    """The largest N TP - M FP over thresholds, for every order of M members and N non-members."""
    for members in combinations(range(m + n), m):
        steps = np.full(m + n, -m)
        steps[list(members)] = n
        yield max(0, int(np.cumsum(steps).max()))


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_null_mean_is_the_average_over_all_orders(m, n):
    expected = np.mean(list(every_order(m, n))) / (m * n)
    assert smirnov.null_mean(m, n) == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_p_value_is_the_share_of_all_orders(m, n):
    reached = np.array(list(every_order(m, n)))
    for excess in range(m * n + 1):
        p, how = smirnov.p_value(excess, m, n)
        assert how == "exact"
        assert p == pytest.approx(np.mean(reached >= excess), abs=1e-13)


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_null_mean_of_equal_sizes_is_smirnovs_sum(n):
    j = np.arange(1, n + 1)
    tail = np.exp(special.betaln(n + 1, n + 1) - special.betaln(n - j + 1, n + j + 1))
    assert smirnov.null_mean(n, n) == pytest.approx(tail.sum() / n, rel=1e-10)


def test_null_mean_of_large_unequal_sizes_is_near_its_limit():
    # E max of a Brownian bridge is sqrt(pi / 8)
    m, n = 40_000, 10_000
    assert smirnov.null_mean(m, n) == pytest.approx(np.sqrt(np.pi / 8 * (1 / m + 1 / n)), rel=0.02)


@pytest.mark.parametrize(("m", "n"), [(30, 47), (60, 60), (100, 7)])
def test_p_value_agrees_with_scipy(m, n):
    rng = np.random.default_rng(m)
    members, non_members = rng.normal(0.4, 1, m), rng.normal(size=n)
    statistic, p = np.asarray(stats.ks_2samp(members, non_members, alternative="less", method="exact"))
    found = max_advantage(members, non_members)
    assert found.value == pytest.approx(float(statistic))
    assert found.p_value == pytest.approx(float(p), rel=1e-9)


def test_tiny_p_values_keep_their_digits():
    for m, n in ((20, 21), (21, 20), (20, 20)):
        p, _ = smirnov.p_value(m * n, m, n)
        assert p == pytest.approx(1 / special.comb(m + n, m, exact=True), rel=1e-9)


def test_large_unequal_sizes_are_asymptotic_and_say_so():
    m, n = 2001, 2000
    gap = 1.9 * np.sqrt(1 / m + 1 / n)
    found, how = smirnov.p_value(round(gap * m * n), m, n)
    assert how == "asymptotic"
    exact = smirnov.p_value(round(gap * 2000 * 2000), 2000, 2000)[0]
    assert found == pytest.approx(exact, rel=0.05)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=10),
    st.lists(st.integers(-3, 3), min_size=1, max_size=10),
)
def test_the_maximum_is_over_every_threshold(members, non_members):
    best = max(
        np.mean(np.array(members) >= t) - np.mean(np.array(non_members) >= t)
        for t in [*members, *non_members, 99]
    )
    assert max_advantage(members, non_members).value == pytest.approx(best, abs=1e-12)


def test_the_maximum_is_biased_by_just_the_null_mean_and_its_p_value_is_calibrated():
    rng = np.random.default_rng(0)
    found = [max_advantage(rng.normal(size=40), rng.normal(size=60)) for _ in range(160)]
    values = np.array([one.value for one in found])
    assert values.mean() == pytest.approx(found[0].null, abs=3 * values.std() / np.sqrt(160))
    assert sure(found[0].null) > 0.1
    small = np.mean([sure(one.p_value) <= 0.05 for one in found])
    assert small <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 160)


def test_the_held_out_advantage_is_unbiased_and_covered():
    rng = np.random.default_rng(1)
    found = [held_out_advantage(rng.normal(size=50), rng.normal(size=70), seed=i) for i in range(160)]
    values = np.array([one.value for one in found])
    assert abs(values.mean()) <= 3 * values.std() / np.sqrt(160)
    assert np.mean([sure(one.low) <= 0 <= sure(one.high) for one in found]) >= 0.936
    assert np.mean([sure(one.p_value) <= 0.05 for one in found]) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 160)


def counts_of(found):
    """The four counts that the note of a held-out advantage shows."""
    return [
        int(count) for part in found.note.replace(",", "").split() if "/" in part for count in part.split("/")
    ]


def test_a_planted_leak_is_found_on_the_other_half():
    rng = np.random.default_rng(6)
    found = held_out_advantage(rng.normal(3, 1, 400), rng.normal(size=400), seed=0)
    assert found.value == pytest.approx(2 * special.ndtr(1.5) - 1, abs=0.08)
    assert sure(found.p_value) < 1e-20


def test_the_held_out_interval_shares_its_error_between_the_two_rates():
    rng = np.random.default_rng(7)
    found = held_out_advantage(rng.normal(1, 1, 60), rng.normal(size=41), seed=3, level=0.9)
    tp, m, fp, n = counts_of(found)
    (tpr_low, tpr_high), (fpr_low, fpr_high) = (
        clopper_pearson(k, of, level=0.95) for k, of in ((tp, m), (fp, n))
    )
    assert (found.low, found.high) == pytest.approx((tpr_low - fpr_high, tpr_high - fpr_low))


def test_the_held_out_p_value_is_fishers():
    rng = np.random.default_rng(2)
    found = held_out_advantage(rng.normal(1, 1, 60), rng.normal(size=41), seed=3)
    tp, m, fp, n = counts_of(found)
    assert (m, n) == (30, 21)
    _, p = np.asarray(stats.fisher_exact([[tp, fp], [m - tp, n - fp]], alternative="greater"))
    assert found.p_value == pytest.approx(float(p), rel=1e-9)


def test_one_seed_gives_one_split():
    rng = np.random.default_rng(4)
    members, non_members = rng.normal(size=30), rng.normal(size=30)
    assert held_out_advantage(members, non_members, seed=5) == held_out_advantage(
        members, non_members, seed=5
    )
    values = {held_out_advantage(members, non_members, seed=seed).value for seed in range(8)}
    assert len(values) > 1


def test_what_cannot_be_halved_has_a_reason():
    assert (
        held_out_advantage([1.0], [0.0, 2.0], seed=0).note == "a class with a single record cannot be halved"
    )
    assert held_out_advantage([], [0.0, 2.0], seed=0).note == "no members"
    assert max_advantage([], [0.0]).value is None
    assert max_advantage([2.0], [1.0]).value == 1.0
