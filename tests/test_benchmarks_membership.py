"""The benchmarks of attacks compare the same work: peers and ours agree where nothing is timed, and can disagree."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import membership
from benchmarks.__main__ import SECTIONS
from benchmarks.attack_peers import logistic_loop, rmia_matrix, shadow_loop
from benchmarks.shadows import Given


@pytest.fixture(scope="module")
def given() -> Given:
    return Given.of(records=300, dim=40, num_classes=4, shadows=16)


def test_a_stack_attacks_as_well_as_a_loop(given):
    said, void = membership.same_strength(given, lambda: shadow_loop.torch_logits(given), allowed=0.05)
    assert not void, said


def test_heads_that_know_nothing_of_the_halves_are_noticed(given):
    others = replace(given, held=np.roll(given.held, 1, axis=1))
    _, void = membership.same_strength(given, lambda: shadow_loop.torch_logits(others), allowed=0.05)
    assert void


def test_a_stack_attacks_its_own_kind_as_well_as_fits_of_sklearn_do_theirs(given):
    said, void = membership.equal_strength(given, lambda: logistic_loop.sklearn_logits(given), allowed=0.05)
    assert not void, said
    others = replace(given, held=np.roll(given.held, 1, axis=1))
    _, void = membership.equal_strength(given, lambda: logistic_loop.sklearn_logits(others), allowed=0.05)
    assert void


def test_fits_of_sklearn_predict_as_the_stack_does(given):
    ours, theirs = (
        z.argmax(-1) for z in (membership.stacked_logits(given), logistic_loop.sklearn_logits(given))
    )
    assert ours.shape == theirs.shape == (16, 300)
    assert (ours == theirs).mean() > 0.85


def test_stack_and_loop_predict_alike(given):
    ours, theirs = (z.argmax(-1) for z in (membership.stacked_logits(given), shadow_loop.torch_logits(given)))
    assert ours.shape == theirs.shape == (16, 300)
    assert (ours == theirs).mean() > 0.85


def test_closed_forms_are_held_against_refits_and_a_wrong_one_is_noticed(monkeypatch):
    given = Given.of(records=4000, dim=128, num_classes=5, shadows=64)
    said, void = membership.refits_and_strength(given)
    assert not void, said
    real = membership._ridge.paired
    monkeypatch.setattr(
        membership._ridge, "paired", lambda *args, **kw: real(*args, **{**kw, "penalty": kw["penalty"] + 1})
    )
    assert membership.refits_and_strength(given)[1]


def test_sorting_gives_the_scores_of_the_matrix_and_another_gamma_does_not(monkeypatch):
    assert membership.same_scores(300) == ("scores identical", False)
    given = membership.probabilities(300, 8)
    assert not np.array_equal(
        membership.sorted_scores(given), rmia_matrix.scores(*given, a=membership.A, gamma=1.5)
    )


def test_rows_are_found_again_by_their_keys():
    assert "membership" in SECTIONS
    assert {pair.id for pair in membership.PAIRS.values()} == {"P9", "P10", "P11"}
    assert len(membership.ROWS) == len(membership.PAIRS) == len(membership._ROWS)
