"""The best F1 over thresholds, and what it is without any skill."""

from itertools import combinations
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, precision_recall_curve

from attacks.statistics import best_f1 as module
from attacks.statistics.best_f1 import best_f1, null_mean

T = TypeVar("T")
SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=10)


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def by_sklearn(labels: np.ndarray, scores: np.ndarray) -> float:
    """Return the largest F1 over every threshold, by the harmonic mean of another library's rates."""
    precision, recall, _ = precision_recall_curve(labels, scores)
    both = precision + recall
    return float(np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both > 0).max())


@pytest.mark.parametrize(("m", "n"), [(1, 1), (1, 4), (3, 3), (4, 2), (5, 4), (2, 7)])
def test_the_null_mean_is_the_average_over_all_orders(m: int, n: int) -> None:
    found, how = null_mean(m, n)
    ranks = np.arange(m + n, 0, -1, dtype=float)
    best = [
        by_sklearn(np.isin(np.arange(m + n), members).astype(int), ranks)
        for members in combinations(range(m + n), m)
    ]
    assert how == "exact"
    assert found == pytest.approx(np.mean(best), abs=1e-12)


@pytest.mark.parametrize(("m", "n"), [(10, 10), (30, 12), (12, 30), (63, 63)])
def test_the_null_mean_is_what_scores_without_skill_reach(m: int, n: int) -> None:
    rng, labels = np.random.default_rng(m), np.repeat([1, 0], [m, n])
    best = np.array([by_sklearn(labels, rng.normal(size=m + n)) for _ in range(1500)])
    assert null_mean(m, n)[0] == pytest.approx(best.mean(), abs=4 * best.std() / len(best) ** 0.5)


@pytest.mark.parametrize(("m", "n"), [(63, 63), (20, 150), (150, 20)])
def test_where_it_is_simulated_it_is_within_its_error_of_the_exact_value(m: int, n: int) -> None:
    mean, error = module._simulated(m, n)
    assert mean == pytest.approx(module._exact(m, n), abs=4 * error)
    assert error < 1e-3


def test_large_sizes_are_simulated_and_say_so() -> None:
    mean, how = null_mean(2000, 2000)
    assert how.startswith("simulated, standard error ")
    assert (mean, how) == null_mean.__wrapped__(2000, 2000), "the same orders in every process"
    assert 2 / 3 < mean < 0.668


@settings(deadline=None, derandomize=True, max_examples=40)
@given(SCORES, SCORES)
def test_the_maximum_is_over_every_threshold_and_ties_are_not_split(
    members: list[int], non_members: list[int]
) -> None:
    labels = np.repeat([1, 0], [len(members), len(non_members)])
    scores = np.array([*members, *non_members])
    best = max(f1_score(labels, scores >= t) for t in np.unique(scores))
    found = best_f1(members, non_members)
    assert found.value == pytest.approx(best, abs=1e-12)
    least = 2 * len(members) / (2 * len(members) + len(non_members))
    assert least - 1e-12 <= sure(found.value) <= 1
    assert least < sure(found.null) < 1


def test_it_says_that_it_is_optimistic_and_has_no_interval() -> None:
    found = best_f1([3.0, 4.0], [1.0, 2.0])
    assert (found.value, found.low, found.high, found.p_value) == (1.0, None, None, None)
    assert "optimistic" in found.kind
    assert found.note == "threshold chosen on the same scores; no-skill mean exact"


def test_an_empty_class_has_no_f1() -> None:
    assert best_f1([], [0.0]).note == "no members"
    assert best_f1([1.0], []).value is None
    with pytest.raises(ValueError, match="n_members=0"):
        null_mean(0, 3)
