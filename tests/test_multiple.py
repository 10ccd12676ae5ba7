"""Holm's correction: one false alarm among many tests is as rare as promised."""

from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.statistics.multiple import holm

T = TypeVar("T")
laws = settings(deadline=None, derandomize=True)
P_VALUES = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(0, 1), max_size=8)


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def step_down(p_values, significance):
    """Holm's procedure as he wrote it: reject the smallest while p <= alpha / (tests left)."""
    rejected, left = [], sorted(p_values, key=lambda name: (p_values[name], name))
    while left and p_values[left[0]] * len(left) <= significance:
        rejected.append(left.pop(0))
    return rejected


@laws
@given(P_VALUES, st.floats(0.001, 0.5))
def test_adjusted_p_values_reject_what_the_step_down_rejects(p_values, significance):
    assert list(holm(p_values, significance=significance).rejected) == step_down(p_values, significance)


@laws
@given(P_VALUES)
def test_adjusted_p_values_keep_the_order_and_lie_between_p_and_bonferroni(p_values):
    adjusted = holm(p_values).adjusted
    for name, p in p_values.items():
        assert p <= sure(adjusted[name]) <= min(1.0, p * len(p_values)) + 1e-15
    in_order = [sure(adjusted[name]) for name in sorted(p_values, key=lambda name: p_values[name])]
    assert in_order == sorted(in_order)


def test_the_family_wise_error_is_controlled_under_dependence():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(4000, 1))
    z = 0.7 * shared + np.sqrt(1 - 0.49) * rng.normal(size=(4000, 6))
    p = np.vectorize(lambda x: 0.5 * (1 - np.tanh(x)))  # any decreasing map, made uniform by ranks below
    ranks = p(z).ravel().argsort().argsort().reshape(z.shape) / z.size
    alarms = [
        bool(holm(dict(zip("abcdef", row.tolist(), strict=True)), significance=0.05).rejected)
        for row in ranks
    ]
    assert np.mean(alarms) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 4000)
    assert np.mean((ranks <= 0.05).any(axis=1)) > 0.1  # uncorrected, it is not


def test_what_was_not_tested_is_passed_through_and_not_counted():
    found = holm({"auc": 0.0004, "tpr": None, "canary": 0.0006}, significance=0.001)
    assert found.not_tested == ("tpr",)
    assert found.adjusted == {"auc": 0.0008, "tpr": None, "canary": 0.0008}
    assert found.rejected == ("auc", "canary")
    assert holm({}).rejected == ()
    assert holm({"tpr": None}).not_tested == ("tpr",)


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 1.1])
def test_a_p_value_that_is_none_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="'tpr'"):
        holm({"auc": 0.1, "tpr": bad})


def test_the_order_of_the_tests_does_not_matter():
    p_values = {"a": 0.01, "b": 0.01, "c": 0.5, "d": 0.02}
    forward, backward = holm(p_values), holm(dict(reversed(p_values.items())))
    assert forward.adjusted == backward.adjusted
    assert forward.rejected == backward.rejected
