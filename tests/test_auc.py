"""The AUC: exact under ties, never flipped, and an interval that covers, also when scores share a release."""

from fractions import Fraction
from typing import TypeVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from sklearn.metrics import roc_auc_score

from attacks.statistics.area import delong, obuchowski
from attacks.statistics.auc import auc, auc_lower, auc_p_value, auc_variance

T = TypeVar("T")
TIED = st.lists(st.integers(-4, 4), min_size=1, max_size=12)
TIED_PAIR = st.lists(st.integers(-4, 4), min_size=2, max_size=12)
laws = settings(deadline=None, derandomize=True, max_examples=40)


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def naive_auc(members, non_members):
    wins = sum(Fraction(2 * (m > o) + (m == o), 2) for m in members for o in non_members)
    return wins / (len(members) * len(non_members))


def naive_variance(members, non_members):
    """DeLong, Eq. 5, pair by pair in rationals."""
    psi = [[Fraction(2 * (m > o) + (m == o), 2) for o in non_members] for m in members]
    rows = [sum(row) / len(row) for row in psi]
    columns = [sum(column) / len(column) for column in zip(*psi, strict=True)]

    def of_mean(values):
        mean = sum(values) / len(values)
        return sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values)

    return of_mean(rows) + of_mean(columns)


@laws
@given(TIED, TIED)
def test_auc_counts_every_pair_and_half_of_every_tie(members, non_members):
    assert auc(members, non_members).value == pytest.approx(float(naive_auc(members, non_members)), abs=1e-15)


@laws
@given(TIED_PAIR, TIED_PAIR)
def test_variance_is_delongs_pair_by_pair(members, non_members):
    expected = float(naive_variance(members, non_members))
    assert auc_variance(members, non_members) == pytest.approx(expected, abs=1e-14)


def test_auc_agrees_with_scikit_learn_on_many_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=3001).round(2)
    member = rng.random(3001) < 0.3
    assert auc(scores[member], scores[~member]).value == pytest.approx(
        roc_auc_score(member, scores), abs=1e-13
    )


@laws
@given(TIED, TIED, st.randoms(use_true_random=False))
def test_row_order_does_not_matter(members, non_members, random):
    expected = auc(members, non_members)
    random.shuffle(members)
    random.shuffle(non_members)
    assert auc(members, non_members) == expected


@laws
@given(TIED, TIED)
def test_a_strictly_increasing_transform_changes_nothing(members, non_members):
    moved = auc(np.exp(members) - 7, np.exp(non_members) - 7)
    assert moved == auc(members, non_members)


@laws
@given(TIED, TIED)
def test_swapping_the_classes_mirrors_the_auc_and_its_interval(members, non_members):
    one, other = auc(members, non_members), auc(non_members, members)
    assert sure(one.value) + sure(other.value) == pytest.approx(1)
    if one.low is not None:
        assert one.low + sure(other.high) == pytest.approx(1)


def test_holders_and_precisions_give_one_number():
    members, non_members = [0.5, 0.25, 0.75], [0.125, 0.25]
    expected = auc(members, non_members)
    for cast in (np.float32, np.float64):
        assert auc(np.array(members, cast)[:, None], np.array(non_members, cast)) == expected
    assert auc(torch.tensor(members), torch.tensor(non_members)) == expected


def test_saturated_scores_keep_their_auc():
    # two levels only: a ROC that takes one record per tied block instead of the whole block gets this wrong
    rng = np.random.default_rng(1)
    members = (rng.normal(1, 1, 2000) > 0.5).astype(float)
    non_members = (rng.normal(0, 1, 2000) > 0.5).astype(float)
    expected = (1 + members.mean() - non_members.mean()) / 2
    assert auc(members, non_members).value == pytest.approx(expected, abs=1e-12)


def test_full_separation_has_an_exact_limit():
    found = auc(range(100, 200), range(100))
    assert (found.value, found.high) == (1.0, 1.0)
    assert found.low == pytest.approx(0.025 ** (2 / 100))
    assert "exact" in found.kind


def test_all_scores_tied_is_one_half_and_not_certain():
    found = auc([0.3] * 7, [0.3] * 9)
    assert found.value == 0.5
    assert sure(found.low) < 0.25
    assert sure(found.high) > 0.75
    assert found.p_value == 1.0


def test_an_inverted_score_is_reported_as_it_is_and_loudly():
    found = auc([1, 2, 3], [4, 5, 6])
    assert found.value == 0.0
    assert "direction suspect" in found.note
    assert found.p_value == 1.0
    assert "direction" not in auc([1, 4, 2], [3, 2, 5]).note


@pytest.mark.parametrize(
    ("members", "non_members", "reason"),
    [([], [0.1], "no members"), ([0.1], [], "no non-members"), ([], [], "no members and no non-members")],
)
def test_an_empty_class_gives_a_reason_not_a_number(members, non_members, reason):
    found = auc(members, non_members)
    assert found.value is None
    assert found.note == reason
    assert auc_p_value(members, non_members, ceiling=0.6) is None
    assert auc_lower(members, non_members) is None
    assert auc_variance(members, non_members) is None


def test_a_single_record_gives_a_value_without_an_interval():
    found = auc([2.0], [1.0, 3.0])
    assert (found.value, found.low, found.p_value) == (0.5, None, None)
    assert "single record" in found.note


@laws
@given(TIED_PAIR, TIED_PAIR, st.floats(0.01, 0.99), st.floats(0.001, 0.5))
def test_p_value_and_lower_limit_say_the_same(members, non_members, ceiling, alpha):
    p = sure(auc_p_value(members, non_members, ceiling=ceiling))
    low = sure(auc_lower(members, non_members, level=1 - alpha))
    if abs(p - alpha) > 1e-9:
        assert (p < alpha) == (low > ceiling)


def test_p_value_and_lower_limit_of_a_few_clusters_say_the_same():
    rng = np.random.default_rng(5)
    members, non_members, ids = one_release_per_cluster(rng, 4, 10, 0.5, 1.0)
    clusters = (ids, ids)
    p = sure(auc_p_value(members, non_members, ceiling=0.5, clusters=clusters))
    assert 0.001 < p < 0.2
    low = auc_lower(members, non_members, level=1 - p, clusters=clusters)
    assert low == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("ceiling", [0.0, -0.1, 1.1, float("nan")])
def test_a_ceiling_outside_the_unit_interval_is_refused(ceiling):
    with pytest.raises(ValueError, match="ceiling"):
        auc_p_value([1, 2], [0, 1], ceiling=ceiling)
    assert auc_p_value([1, 2], [0, 0], ceiling=1.0) == 1.0


@pytest.mark.parametrize(("n", "true"), [(100, 0.575), (50, 0.88)])
def test_the_interval_of_independent_scores_covers(n, true):
    rng = np.random.default_rng(2)
    mu = np.sqrt(2) * special.ndtri(true)
    areas = [delong(rng.normal(mu, 1, n), rng.normal(0, 1, n)) for _ in range(1000)]
    covered = [low <= true <= high for low, high in (area.interval(level=0.95) for area in areas)]
    assert np.mean(covered) >= 0.936
    assert np.mean([area.p_above(true) <= 0.05 for area in areas]) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000)


def one_release_per_cluster(rng, releases, per_release, spread, mu):
    """Scores whose members and non-members share the noise of their release, each class in its own way."""
    cluster = np.repeat(np.arange(releases), per_release)
    members = mu + rng.normal(0, spread, releases)[cluster] + rng.normal(size=len(cluster))
    non_members = rng.normal(0, spread, releases)[cluster] + rng.normal(size=len(cluster))
    return members, non_members, cluster


def test_the_clustered_interval_covers_where_the_plain_one_does_not():
    rng = np.random.default_rng(3)
    true = special.ndtr(0.8 / np.sqrt(2 * (1 + 0.7**2)))
    plain, clustered, false_alarms = [], [], []
    for _ in range(500):
        members, non_members, ids = one_release_per_cluster(rng, 12, 15, 0.7, 0.8)
        by_record, by_release = delong(members, non_members), obuchowski(members, non_members, ids, ids)
        for covered, area in ((plain, by_record), (clustered, by_release)):
            low, high = area.interval(level=0.95)
            covered.append(low <= true <= high)
        false_alarms.append(by_release.p_above(true) <= 0.01)
    assert np.mean(plain) < 0.75
    assert np.mean(clustered) >= 0.93
    assert np.mean(false_alarms) <= 0.01 + 3 * np.sqrt(0.01 / 500)


@laws
@given(TIED_PAIR, TIED_PAIR)
def test_one_cluster_per_record_is_delong(members, non_members):
    ids = (list(range(len(members))), list(range(100, 100 + len(non_members))))
    clustered = auc_variance(members, non_members, clusters=ids)
    assert clustered == pytest.approx(auc_variance(members, non_members), abs=1e-14)


def test_the_variance_of_two_clusters_by_hand():
    # Obuchowski's S10/M + S01/N + 2 S11/(MN) for placements (1, .5 | 1, 1) and (.75, .75 | 1, 1), area .875
    members, non_members = [4, 2, 4, 5], [3, 2.5, 1, 0]
    ids = ([0, 0, 1, 1], [0, 0, 1, 1])
    x, y = np.array([1.5 - 1.75, 2 - 1.75]), np.array([1.5 - 1.75, 2 - 1.75])
    expected = 2 * (x @ x) / 16 + 2 * (y @ y) / 16 + 4 * (x @ y) / 16
    assert auc(members, non_members).value == 0.875
    assert auc_variance(members, non_members, clusters=ids) == pytest.approx(expected, abs=1e-15)


def test_names_of_clusters_do_not_matter():
    rng = np.random.default_rng(4)
    members, non_members, ids = one_release_per_cluster(rng, 5, 6, 0.5, 1.0)
    named = np.array(["b", "e", "a", "d", "c"])[ids]
    by_number, by_name = (auc(members, non_members, clusters=(c, c)) for c in (ids, named))
    assert by_name.low == pytest.approx(by_number.low, abs=1e-13)
    assert by_name.value == by_number.value


def test_one_release_shows_no_interval():
    found = auc([3, 2, 1], [2, 1, 0], clusters=([7, 7, 7], [7, 7, 7]))
    assert found.value is not None
    assert found.low is None
    assert "single cluster" in found.note
    assert auc_p_value([3, 2, 1], [2, 1, 0], ceiling=0.6, clusters=([7, 7, 7], [7, 7, 7])) is None


@pytest.mark.parametrize(
    ("clusters", "what"),
    [
        (([0, 1], [0, 1, 2]), "members have shape"),
        (([0, 1, 1], [0, 1, float("nan")]), "NaN"),
        (([0, 1, 1], ["a", "b", "b"]), "differ in kind"),
    ],
)
def test_cluster_ids_that_do_not_fit_are_refused(clusters, what):
    with pytest.raises(ValueError, match=what):
        auc([3, 2, 1], [2, 1, 0], clusters=clusters)
