"""Differences of AUCs: DeLong's covariance pair by pair, its laws, and a test that is right under the null."""

from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attacks.statistics.area import delong, obuchowski
from attacks.statistics.paired_area import paired_difference, unpaired_difference

T = TypeVar("T")
laws = settings(deadline=None, derandomize=True, max_examples=40)


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


@st.composite
def two_attacks(draw, least=2):
    """Draw tied scores of two attacks on the same candidates."""
    m, n = draw(st.integers(least, 9)), draw(st.integers(least, 9))

    def scores(k):
        return draw(st.lists(st.integers(-4, 4), min_size=k, max_size=k))

    return (scores(m), scores(n)), (scores(m), scores(n))


def psi(members, non_members):
    return np.array([[(m > o) + (m == o) / 2 for o in non_members] for m in members])


def contrast_variance(first, second):
    """Return L S L' with S of DeLong et al. (1988), Eq. 8: covariance matrices of row and column means."""
    wins = [psi(*first), psi(*second)]
    s10 = np.cov([one.mean(axis=1) for one in wins])
    s01 = np.cov([one.mean(axis=0) for one in wins])
    contrast = np.array([1, -1])
    m, n = wins[0].shape
    return contrast @ (s10 / m + s01 / n) @ contrast


@laws
@given(two_attacks())
def test_value_and_p_value_are_those_of_the_covariance_matrices(attacks):
    first, second = attacks
    found = paired_difference(first, second)
    value, variance = psi(*first).mean() - psi(*second).mean(), contrast_variance(first, second)
    assert found.value == pytest.approx(value, abs=1e-14)
    if variance > 1e-12:
        assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(value) / np.sqrt(variance)), abs=1e-12)
        reach = 1.959963984540054 * np.sqrt(variance)
        assert found.low == pytest.approx(max(-1, value - reach))
        assert found.high == pytest.approx(min(1, value + reach))
    else:
        assert found.low is None
        assert found.p_value == (1.0 if found.value == 0 else None)


@laws
@given(two_attacks(least=1))
def test_swapping_the_attacks_changes_the_sign_and_nothing_else(attacks):
    one, other = paired_difference(*attacks), paired_difference(*attacks[::-1])
    assert sure(one.value) == -sure(other.value)
    assert one.p_value == other.p_value
    assert (one.low is None) == (other.low is None)
    if one.low is not None:
        assert (one.low, one.high) == pytest.approx((-sure(other.high), -sure(other.low)), abs=1e-15)


@laws
@given(two_attacks(), st.floats(0.1, 5), st.floats(-3, 3))
def test_an_attack_does_not_differ_from_itself_on_another_scale(attacks, scale, shift):
    members, non_members = (np.array(part, dtype=float) for part in attacks[0])
    found = paired_difference((members, non_members), (scale * members + shift, scale * non_members + shift))
    assert (found.value, found.p_value, found.low) == (0.0, 1.0, None)


@laws
@given(two_attacks())
def test_the_order_of_the_candidates_does_not_matter_as_long_as_it_is_one(attacks):
    first, second = attacks
    back = paired_difference(
        tuple(part[::-1] for part in first), tuple(part[::-1] for part in second)
    ).to_dict()
    assert back == pytest.approx(paired_difference(first, second).to_dict(), abs=1e-12)


def correlated(rng, m=60, n=50, lift=(1.0, 0.6), share=0.8):
    """Return two attacks whose scores of one candidate have much in common."""

    def both(k, means):
        common = rng.normal(size=(k, 1))
        return np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=(k, 2)) + np.array(means)

    member_M2, non_member_N2 = both(m, lift), both(n, (0.0, 0.0))
    return [(member_M2[:, i], non_member_N2[:, i]) for i in (0, 1)]


def error(found):
    """Return the standard error that an interval was made with, normal quantile."""
    return (found.high - found.low) / 2 / 1.959963984540054


def test_the_interval_is_as_wide_as_resampled_candidates_say():
    rng = np.random.default_rng(3)
    first, second = correlated(rng)
    values = []
    for _ in range(2000):
        member = rng.integers(60, size=60)
        other = rng.integers(50, size=50)
        values.append(
            psi_mean(first[0][member], first[1][other]) - psi_mean(second[0][member], second[1][other])
        )
    assert error(paired_difference(first, second)) == pytest.approx(np.std(values), rel=0.08)


def psi_mean(members, non_members):
    return (members[:, None] > non_members).mean() + (members[:, None] == non_members).mean() / 2


def test_pairing_sees_a_difference_that_its_absence_hides():
    first, second = correlated(np.random.default_rng(1), share=0.9)
    paired = paired_difference(first, second)
    apart = unpaired_difference(delong(*first), delong(*second))
    assert paired.value == pytest.approx(apart.value)
    assert error(paired) < 0.5 * error(apart)
    assert sure(paired.p_value) < 0.05 < sure(apart.p_value)


@pytest.mark.parametrize("paired", [True, False])
def test_equal_attacks_are_called_different_as_rarely_as_stated(paired):
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(1000):
        first, second = correlated(rng, lift=(0.7, 0.7), share=0.7 if paired else 0.0)
        found = (
            paired_difference(first, second)
            if paired
            else unpaired_difference(delong(*first), delong(*second))
        )
        wrong += sure(found.p_value) <= 0.05
    assert 28 <= wrong <= 72  # 50, within 3.2 standard errors of a binomial


@laws
@given(two_attacks())
def test_a_cluster_per_record_is_delong(attacks):
    first, second = attacks
    m, n = len(first[0]), len(first[1])
    alone = paired_difference(first, second)
    clustered = paired_difference(first, second, clusters=(range(m), range(m, m + n)))
    assert clustered.value == alone.value
    if alone.low is None:
        assert clustered.low is None
        return
    # the variance is the same; t has heavier tails than the normal
    excess = stats.norm.isf(sure(alone.p_value) / 2)
    assert clustered.p_value == pytest.approx(2 * stats.t.sf(excess, min(m, n) - 1))


def copied(classes):
    members, non_members = classes
    return np.repeat(members, 2), np.repeat(non_members, 2)


def test_a_copy_of_every_record_in_its_cluster_adds_nothing():
    first, second = correlated(np.random.default_rng(2), m=12, n=9)
    ids = (np.arange(12), np.arange(12, 21))
    once = paired_difference(first, second, clusters=ids)
    twice = paired_difference(copied(first), copied(second), clusters=copied(ids))
    assert twice.to_dict() == pytest.approx(once.to_dict())


def test_clusters_of_a_member_and_a_non_member_agree_with_resampled_clusters():
    rng = np.random.default_rng(5)
    common = rng.normal(size=(80, 1))
    member = common + rng.normal(size=(80, 2)) + np.array([0.8, 0.5])
    other = common + rng.normal(size=(80, 2))
    found = paired_difference(
        (member[:, 0], other[:, 0]), (member[:, 1], other[:, 1]), clusters=(range(80), range(80))
    )
    values = []
    for _ in range(2000):
        rows = rng.integers(80, size=80)
        values.append(psi_mean(member[rows, 0], other[rows, 0]) - psi_mean(member[rows, 1], other[rows, 1]))
    quantile = stats.t.ppf(0.975, 79)
    assert (sure(found.high) - sure(found.low)) / 2 / quantile == pytest.approx(np.std(values), rel=0.08)


def test_clusters_that_cancel_leave_no_rounding_for_a_variance():
    # in each cluster the member gains what the non-member loses, so every resample has the same difference
    first, second = ([1, 2, 3], [0, 1, 2]), ([2, 3, 1], [1, 2, 0])
    found = paired_difference(first, second, clusters=([0, 1, 2], [0, 1, 2]))
    assert (found.value, found.p_value) == (0.0, 1.0)


def test_an_auc_of_one_says_whose_variance_is_used():
    separated, other = (range(10, 20), range(10)), (range(10), [3, 4, 5, 30, 3, 4, 5, 30, 1, 2])
    found = paired_difference(separated, other)
    assert "no variance of its own" in found.note
    assert sure(found.p_value) < 0.05


def test_a_difference_that_does_not_vary_is_not_tested():
    separated, constant = (range(5, 10), range(5)), ([1] * 5, [1] * 5)
    found = paired_difference(separated, constant)
    assert (found.value, found.p_value, found.low) == (0.5, None, None)
    assert "does not vary" in found.note
    same = paired_difference(separated, (range(10, 15), range(5)))
    assert (same.value, same.p_value) == (0.0, 1.0)


def test_one_record_shows_no_spread():
    found = paired_difference(([1.0], [0.0, 2.0]), ([0.0], [0.0, 1.0]))
    assert found.value == 0.25
    assert found.p_value is None
    assert "single independent unit" in found.note
    apart = unpaired_difference(
        delong(np.array([1.0]), np.array([0.0, 2.0])), delong(np.ones(2), np.arange(2.0))
    )
    assert apart.p_value is None


def test_an_empty_class_has_a_reason():
    found = paired_difference(([], [1.0]), ([], [2.0]))
    assert found.value is None
    assert found.note == "no members"


def test_different_numbers_of_candidates_are_refused():
    with pytest.raises(ValueError, match="first scores 2 members and 1 non-members, second 1 and 1"):
        paired_difference(([1, 2], [0]), ([1], [0]))
    with pytest.raises(ValueError, match=r"members of the second\[1\] is NaN"):
        paired_difference(([1, 2], [0]), ([1, float("nan")], [0]))
    with pytest.raises(ValueError, match="level"):
        paired_difference(([1, 2], [0]), ([1, 2], [0]), level=1.0)


def test_unpaired_clusters_use_the_fewest_degrees_of_freedom():
    rng = np.random.default_rng(0)
    ids = np.arange(20) // 5
    areas = [
        obuchowski(rng.normal(1, 1, 20), rng.normal(size=20), ids, ids),
        delong(rng.normal(1, 1, 20), rng.normal(size=20)),
    ]
    found = unpaired_difference(*areas)
    spread = np.sqrt(sum(sure(area.variance) for area in areas))
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(sure(found.value)) / spread, 3))
