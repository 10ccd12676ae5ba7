"""The bootstrap agrees with the closed forms and with resampling by hand."""

from fractions import Fraction
from typing import TypeVar

import numpy as np
import pytest
from scipy import stats

from attacks.statistics.area import delong, obuchowski
from attacks.statistics.auc import auc
from attacks.statistics.bootstrap import auc_replicates, bootstrap_auc, bootstrap_tpr, tpr_replicates
from attacks.statistics.cluster_bootstrap import cluster_auc_replicates, cluster_tpr_replicates
from attacks.statistics.tpr import operating_point

T = TypeVar("T")


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def same_law(one, other):
    """Return whether two samples could come from one distribution."""
    return np.asarray(stats.ks_2samp(one, other))[1] > 0.001


def normal_scores(seed, m, n, mu=1.0):
    rng = np.random.default_rng(seed)
    return rng.normal(mu, 1, m), rng.normal(0, 1, n)


def resampled(members, non_members, statistic, replicates, seed):
    rng = np.random.default_rng(seed)
    return np.array(
        [
            statistic(rng.choice(members, len(members)), rng.choice(non_members, len(non_members)))
            for _ in range(replicates)
        ]
    )


@pytest.mark.parametrize("decimals", [1, 8])
def test_auc_replicates_have_the_law_of_resampling_by_hand(decimals):
    members, non_members = (scores.round(decimals) for scores in normal_scores(0, 60, 40))
    fast = auc_replicates(members, non_members, rng=np.random.default_rng(1), replicates=4000)
    slow = resampled(members, non_members, lambda m, o: delong(m, o).value, 500, 2)
    assert same_law(fast, slow)
    assert fast.mean() == pytest.approx(auc(members, non_members).value, abs=4 * fast.std() / np.sqrt(4000))


def test_blocks_of_many_scores_keep_the_standard_error():
    members, non_members = normal_scores(3, 12_000, 9_000)
    area = delong(members, non_members)
    fast = auc_replicates(members, non_members, rng=np.random.default_rng(4), replicates=1500)
    assert fast.std() == pytest.approx(area.standard_error, rel=4 / np.sqrt(2 * 1500))
    assert fast.mean() == pytest.approx(area.value, abs=4 * area.standard_error / np.sqrt(1500))


@pytest.mark.parametrize(
    ("decimals", "rate"), [(8, Fraction(1, 20)), (1, Fraction(1, 10)), (0, Fraction(1, 4))]
)
def test_tpr_replicates_have_the_law_of_resampling_by_hand(decimals, rate):
    members, non_members = (scores.round(decimals) for scores in normal_scores(5, 80, 100))
    allowed = int(rate * 100)
    fast = tpr_replicates(members, non_members, rate=rate, rng=np.random.default_rng(6), replicates=4000)
    slow = resampled(members, non_members, lambda m, o: operating_point(m, o, allowed=allowed).tpr, 500, 7)
    assert same_law(fast, slow)


def test_the_interval_is_that_of_delong():
    members, non_members = normal_scores(8, 300, 300)
    by_formula, by_resampling = auc(members, non_members), bootstrap_auc(members, non_members, seed=0)
    assert by_resampling.value == by_formula.value
    assert by_resampling.low == pytest.approx(by_formula.low, abs=0.006)
    assert by_resampling.high == pytest.approx(by_formula.high, abs=0.006)


def test_the_tpr_interval_holds_the_noise_of_the_threshold_too():
    members, non_members = normal_scores(9, 2000, 200)
    found = bootstrap_tpr(members, non_members, fpr=0.05, seed=0)
    value, low, high = sure(found.value), sure(found.low), sure(found.high)
    assert low <= value <= high
    by_members_only = 2 * 1.96 * np.sqrt(value * (1 - value) / 2000)
    assert high - low > 2 * by_members_only


def test_one_seed_gives_one_interval():
    members, non_members = normal_scores(10, 50, 50)
    one, two = (bootstrap_auc(members, non_members, seed=3, replicates=200) for _ in range(2))
    assert one == two
    assert one != bootstrap_auc(members, non_members, seed=4, replicates=200)
    assert "200 replicates, seed 3" in one.kind


def clustered_scores(seed, clusters, per_cluster):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(clusters), per_cluster)
    members = 0.8 + rng.normal(0, 0.7, clusters)[ids] + rng.normal(size=len(ids))
    return members, rng.normal(size=len(ids)), ids


def test_resampling_clusters_agrees_with_the_clustered_formula():
    members, non_members, ids = clustered_scores(11, 60, 10)
    expected = obuchowski(members, non_members, ids, ids).standard_error
    found = cluster_auc_replicates(
        members, non_members, ids, ids, rng=np.random.default_rng(12), replicates=1000
    )
    assert found.std() == pytest.approx(expected, rel=0.1)
    assert expected > 1.5 * delong(members, non_members).standard_error


def test_one_cluster_per_record_is_the_stratified_bootstrap():
    members, non_members = (scores.round(1) for scores in normal_scores(13, 70, 50))
    ids = (np.arange(70), np.arange(70, 120))
    rng = np.random.default_rng(14)
    by_cluster = cluster_auc_replicates(members, non_members, *ids, rng=rng, replicates=1500)
    by_record = auc_replicates(members, non_members, rng=rng, replicates=4000)
    assert same_law(by_cluster, by_record)
    rate = Fraction(1, 10)
    by_cluster = cluster_tpr_replicates(members, non_members, *ids, rate=rate, rng=rng, replicates=1500)
    by_record = tpr_replicates(members, non_members, rate=rate, rng=rng, replicates=4000)
    assert same_law(by_cluster, by_record)


def test_clusters_of_every_kind_stay():
    # cluster 2 holds the only non-members; drawing clusters at large would lose them in one resample of three
    members, non_members = np.array([-1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.5])
    found = bootstrap_auc(members, non_members, seed=0, clusters=([0, 0, 1, 1], [2, 2]))
    assert found.low is not None
    tpr = bootstrap_tpr(members, non_members, fpr=0.5, seed=0, clusters=([0, 0, 1, 1], [2, 2]))
    assert (tpr.value, tpr.low is None) == (0.75, False)


def test_what_does_not_vary_has_no_interval():
    apart = bootstrap_auc([3.0, 4.0], [1.0, 2.0], seed=0)
    assert (apart.value, apart.low) == (1.0, None)
    assert "do not vary" in apart.note
    single = bootstrap_auc([3.0, 1.0], [1.0, 2.0], seed=0, clusters=([0, 0], [0, 0]))
    assert (single.low, single.level) == (None, None)


def test_what_cannot_be_estimated_has_a_reason():
    assert bootstrap_auc([], [1.0], seed=0).note == "no members"
    assert bootstrap_tpr([], [1.0], fpr=0.5, seed=0).note == "no members"
    assert "cannot show" in bootstrap_tpr([1.0], [1.0] * 9, fpr=0.1, seed=0).note
    with pytest.raises(ValueError, match="replicates"):
        bootstrap_auc([1.0], [0.0], seed=0, replicates=0)
