"""Members drawn anew within each upload: the p-value against counting all draws, and what it must not depend on."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.statistics.auc import auc
from attacks.statistics.estimate import Estimate
from attacks.statistics.exchangeable import DRAWS, exchangeable_p_value
from attacks.statistics.scores import split
from privkit.audit.compared import compared
from privkit.audit.taken import Judged
from tests.made_defenses import judged


def uploads(count: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Return who is a member and which upload each is of: half of every upload's candidates are members."""
    return np.tile(np.repeat([True, False], each), count), np.repeat(np.arange(count), 2 * each)


def counted(scores: np.ndarray, members: np.ndarray, upload: np.ndarray) -> float:
    """Return the share of all draws of members whose sum of mid-ranks is at least as large."""
    ranks = np.array([(scores < s).sum() + (scores == s).sum() / 2 for s in scores])
    own = [np.flatnonzero(upload == u) for u in np.unique(upload)]
    sums = [
        [ranks[list(drawn)].sum() for drawn in combinations(rows, int(members[rows].sum()))] for rows in own
    ]
    return float(np.mean([sum(parts) >= ranks[members].sum() - 1e-9 for parts in product(*sums)]))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("decimals", [0, 8], ids=["ties", "no ties"])
def test_it_is_that_of_counting_every_draw(seed, decimals):
    members, upload = uploads(3, 3)
    scores = np.round(np.random.default_rng(seed).normal(0.8 * members + upload, 1.0), decimals)
    assert exchangeable_p_value(scores, members, upload) == pytest.approx(
        counted(scores, members, upload), abs=4 * 0.5 / DRAWS**0.5
    )


def test_it_is_below_any_level_as_often_as_that_at_most_where_members_are_drawn():
    rng, (members, upload) = np.random.default_rng(0), uploads(7, 4)
    level = np.repeat(rng.normal(size=7), 8)  # an upload's scores go together
    found = [
        exchangeable_p_value(level + rng.normal(size=56) * (1 + upload), members, upload) for _ in range(300)
    ]
    for alpha in (0.2, 0.05, 0.01):
        assert np.mean(np.array(found) <= alpha) <= alpha + 3 * (alpha / 300) ** 0.5


def test_a_few_uploads_whose_members_all_score_higher_are_enough():
    members, upload = uploads(7, 8)
    assert exchangeable_p_value(1.0 * members, members, upload) == 1 / (DRAWS + 1)


@given(st.lists(st.floats(-5, 5), min_size=12, max_size=12), st.floats(0.1, 3.0))
def test_only_the_order_of_scores_counts(scores, scale):
    members, upload = uploads(2, 3)
    known = np.array(scores).round(6)
    assert exchangeable_p_value(known, members, upload) == exchangeable_p_value(
        np.arctan(scale * known), members, upload
    )


def test_scores_all_alike_say_nothing_and_uploads_without_others_cannot_be_asked():
    members, upload = uploads(2, 3)
    assert exchangeable_p_value(np.zeros(12), members, upload) == 1.0
    assert exchangeable_p_value(np.arange(12.0), np.repeat([True, False], 6), upload) is None


def test_the_interval_of_the_best_of_five_holds_as_often_as_stated_and_an_unchosen_one_would_not():
    """Five attacks without skill: the largest AUC is above one half, and its own 95 % interval misses it often."""
    held: dict[int, list[bool]] = {5: [], 1: []}
    for trial in range(120):
        tried = [judged(0.5, seed=5 * trial + i) for i in range(5)]
        best = max(tried, key=lambda one: one.auc_of(np.ones(len(one.scores), bool)) or 0.0)
        for count, found in held.items():
            low = area(best, level=1 - 0.05 / count).low
            found.append(low is not None and low <= 0.5)
    assert np.mean(held[5]) >= 0.95
    assert np.mean(held[1]) < 0.93
    one = judged(0.7)
    assert compared(one, tried=5).auc == area(one, level=0.99)


def area(one: Judged, *, level: float) -> Estimate:
    members, others = split(one.scores, one.members)
    return auc(members, others, clusters=(one.clusters[one.members], one.clusters[~one.members]), level=level)
