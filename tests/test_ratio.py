"""The ratio of two errors over the same records, and its interval."""

import numpy as np
import pytest

from attacks.statistics.ratio import ratio_of_means


def test_a_common_factor_is_found_exactly_and_without_spread():
    errors = np.random.default_rng(0).random(50) + 0.1
    found = ratio_of_means(0.25 * errors, errors, seed=0)
    assert (found.value, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25))
    assert found.records == 50


def test_records_bring_both_errors_along():
    """Errors that rise and fall together leave a narrower interval than those that do not."""
    rng = np.random.default_rng(1)
    other = rng.exponential(size=200)
    together = ratio_of_means(0.5 * other + 0.01 * rng.random(200), other, seed=0)
    apart = ratio_of_means(0.5 * rng.permutation(other), other, seed=0)
    assert together.high - together.low < 0.2 * (apart.high - apart.low)


def test_intervals_cover_as_often_as_they_say():
    rng, covered = np.random.default_rng(2), 0
    for seed in range(300):
        other = rng.gamma(2.0, size=80)
        one = 0.4 * other * rng.gamma(4.0, 0.25, size=80)
        found = ratio_of_means(one, other, seed=seed, replicates=400)
        covered += found.low <= 0.4 <= found.high
    assert 0.90 <= covered / 300 <= 0.99


def test_the_same_seed_gives_the_same_interval():
    one, other = np.random.default_rng(3).random((2, 30))
    assert ratio_of_means(one, other, seed=5) == ratio_of_means(one, other, seed=5)
    assert ratio_of_means(one, other, seed=5) != ratio_of_means(one, other, seed=6)


@pytest.mark.parametrize(
    ("one", "other"),
    [([], []), ([1.0], [0.0]), ([-1.0], [1.0]), ([np.nan], [1.0]), ([1.0], [np.inf])],
)
def test_what_has_no_ratio_is_refused(one, other):
    with pytest.raises(ValueError, match="finite and at least 0"):
        ratio_of_means(np.array(one), np.array(other), seed=0)
