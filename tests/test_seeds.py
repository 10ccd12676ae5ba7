"""Mean and spread over seeds."""

import numpy as np
import pytest
from scipy import stats

from attacks.statistics.seeds import over_seeds


def test_the_spread_is_that_of_a_sample():
    values = [0.61, 0.58, 0.66, 0.63, 0.60]
    found = over_seeds(values, level=0.9)
    assert found.std == pytest.approx(stats.tstd(values))
    assert found.se == pytest.approx(stats.sem(values))
    expected = stats.t.interval(0.9, 4, loc=np.mean(values), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.n, found.n_missing, found.note) == (5, 0, "")


def test_one_seed_has_a_mean_but_no_spread():
    found = over_seeds([0.7])
    assert (found.mean, found.std, found.se, found.low, found.high, found.n) == (
        0.7,
        None,
        None,
        None,
        None,
        1,
    )
    assert "one seed" in found.note


@pytest.mark.parametrize("values", [[], [None, None]])
def test_no_value_has_a_reason(values):
    found = over_seeds(values)
    assert found.mean is None
    assert (found.n, found.n_missing) == (0, len(values))
    assert found.note == "no seed gave a value"


def test_seeds_without_a_value_are_left_out_and_counted():
    assert over_seeds([0.5, None, 0.7]).mean == pytest.approx(0.6)
    assert over_seeds([0.5, None, 0.7]).n_missing == 1


def test_equal_seeds_have_no_spread():
    found = over_seeds([0.5, 0.5, 0.5])
    assert (found.std, found.low, found.high) == (0.0, 0.5, 0.5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_value_that_is_no_number_is_refused_with_its_index(bad):
    with pytest.raises(ValueError, match=r"values\[1\]"):
        over_seeds([0.5, bad])


def test_the_t_interval_covers():
    rng = np.random.default_rng(0)
    found = [over_seeds(rng.normal(3, 2, 4).tolist()) for _ in range(1000)]
    assert all(one.n == 4 for one in found)
    assert (
        np.mean([one.low <= 3 <= one.high for one in found if one.low is not None and one.high is not None])
        >= 0.936
    )
