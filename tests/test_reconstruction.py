"""The measures of a reconstruction, against closed forms and an independent root of a matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, stats

from attacks.statistics import reconstruction


def drawn(seed: int, n: int, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + rng.standard_normal(d)


@given(st.integers(0, 1000), st.integers(1, 12))
def test_cffd_of_a_set_and_itself_is_zero(seed, n):
    z = drawn(seed, n)
    assert reconstruction.frechet_of(z, z) == pytest.approx(0, abs=1e-5)


@given(st.integers(0, 1000), st.integers(1, 12), st.integers(2, 12))
def test_cffd_is_symmetric_and_at_least_the_distance_of_the_means(seed, n, m):
    a, b = drawn(seed, n), drawn(seed + 1, m)
    found = reconstruction.frechet_of(a, b)
    assert found == pytest.approx(reconstruction.frechet_of(b, a), rel=1e-6, abs=1e-6)
    assert found >= ((a.mean(0) - b.mean(0)) ** 2).sum() - 1e-6


def test_cffd_of_commuting_covariances_is_that_of_their_deviations():
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    one, other = np.array([4.0, 1.0, 0.25, 0.0, 9.0]), np.array([1.0, 1.0, 4.0, 2.0, 0.0])
    means = np.random.default_rng(1).standard_normal((2, 5))
    found = reconstruction.frechet(means[0], axes * one @ axes.T, means[1], axes * other @ axes.T)
    expected = ((means[0] - means[1]) ** 2).sum() + ((np.sqrt(one) - np.sqrt(other)) ** 2).sum()
    assert found == pytest.approx(expected)


def test_cffd_agrees_with_the_root_that_scipy_takes():
    a, b = drawn(3, 40), drawn(4, 60)
    root = linalg.sqrtm(np.cov(a.T) @ np.cov(b.T))
    traces = np.trace(np.cov(a.T)) + np.trace(np.cov(b.T)) - 2 * np.trace(np.real(root))
    expected = ((a.mean(0) - b.mean(0)) ** 2).sum() + traces
    assert reconstruction.frechet_of(a, b) == pytest.approx(expected)


def test_cffd_is_what_the_best_pairing_of_many_draws_costs():
    """On a line the Frechet distance is the mean squared difference of sorted draws."""
    rng = np.random.default_rng(0)
    a, b = 1 + 2 * rng.standard_normal(200_000), -1 + 0.5 * rng.standard_normal(200_000)
    paired = ((np.sort(a) - np.sort(b)) ** 2).mean()
    one = reconstruction.frechet(np.array([1.0]), np.array([[4.0]]), np.array([-1.0]), np.array([[0.25]]))
    assert one == pytest.approx(2**2 + 1.5**2)
    assert paired == pytest.approx(one, rel=0.02)


def test_one_rebuilt_embedding_leaves_the_spread_of_the_class():
    z, real = drawn(5, 1), drawn(6, 30)
    expected = ((z[0] - real.mean(0)) ** 2).sum() + np.trace(np.cov(real.T))
    assert reconstruction.frechet_of(z, real) == pytest.approx(expected)


def test_cosines_know_no_length_and_centring_takes_the_common_part():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 500, 64))
    assert reconstruction.cosines(3 * a, a) == pytest.approx(np.ones(500))
    assert abs(reconstruction.cosines(a, b).mean()) < 0.02
    common = np.full(64, 5.0)
    assert reconstruction.cosines(a + common, b + common).min() > 0.9
    centred = reconstruction.centred_cosines(a + common, b + common, centre_d=common)
    assert centred == pytest.approx(reconstruction.cosines(a, b))


def test_the_floor_between_classes_is_the_mean_over_pairs():
    means = drawn(7, 6)
    directions = means / np.linalg.norm(means, axis=1, keepdims=True)
    pairs = directions @ directions.T
    expected = [np.delete(pairs[i], i).mean() for i in range(6)]
    assert reconstruction.between_classes(means) == pytest.approx(np.array(expected))
    with pytest.raises(ValueError, match="at least 2"):
        reconstruction.between_classes(means[:1])


def test_class_means_are_those_of_each_label():
    labels, means = reconstruction.class_means(np.array([[1.0], [3.0], [8.0]]), np.array([4, 4, 2]))
    assert labels.tolist() == [2, 4]
    assert means.tolist() == [[8.0], [2.0]]


def test_a_hit_is_nearest_to_its_own_mean_alone():
    means = np.eye(3)
    own = np.arange(3)
    assert reconstruction.hits(means, means, own).all()
    assert not reconstruction.hits(np.ones((3, 3)), means, own).any()
    assert not reconstruction.hits(np.roll(means, 1, axis=0), means, own).any()


def test_vectors_without_skill_hit_at_chance():
    rng = np.random.default_rng(0)
    found = reconstruction.hits(
        rng.standard_normal((4000, 32)), rng.standard_normal((10, 32)), rng.integers(0, 10, 4000)
    )
    estimate = reconstruction.top1(found, classes=10)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= 0.1 <= estimate.high


@pytest.mark.parametrize(("k", "n"), [(0, 7), (3, 7), (7, 7)])
def test_top1_has_the_exact_interval_and_tail(k, n):
    found = reconstruction.top1(np.arange(n) < k, classes=10)
    exact = stats.binomtest(k, n, 0.1, alternative="greater")
    assert found.p_value == pytest.approx(exact.pvalue)
    interval = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert (found.value, found.null, found.n_members) == (k / n, 0.1, n)


def test_no_target_has_no_share_and_a_reason():
    found = reconstruction.top1(np.zeros(0, dtype=bool), classes=10)
    assert found.value is None
    assert found.note == "no targets"
