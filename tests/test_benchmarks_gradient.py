"""The benchmarks of attacks on gradients compare the same work: peers and ours agree where nothing is timed."""

import numpy as np
import pytest

from benchmarks import gradient
from benchmarks.__main__ import SECTIONS
from benchmarks.gradient import Given, Size
from benchmarks.gradient_peers import qr_per_candidate


@pytest.mark.parametrize("size", [Size(40, 80, 20), Size(280, 300, 60), Size(280, 300, 200, dead=20)])
def test_ours_are_the_residuals_of_a_decomposition(size):
    said, void = gradient.same_residuals(size, allowed=1e-4)
    assert not void, said


def test_another_batch_is_noticed(monkeypatch):
    real = gradient.factored_once
    monkeypatch.setattr(gradient, "factored_once", lambda given: real(given) + 0.01)
    assert gradient.same_residuals(Size(40, 80, 20), allowed=1e-4)[1]


def test_the_peer_gives_the_same_residuals_where_all_rows_are_independent():
    given = Given.of(Size(20, 80, 40), layers=2, candidates=10)
    theirs = qr_per_candidate.residuals(given.gradients, given.inputs_LNd)
    np.testing.assert_allclose(theirs, gradient.oracle(given, 20), atol=1e-3)


def test_the_peer_does_not_survive_dead_units():
    given = Given.of(Size(40, 80, 60, dead=3), layers=1, candidates=4)
    assert not np.isfinite(qr_per_candidate.residuals(given.gradients, given.inputs_LNd)).all()


def test_subspaces_are_the_same():
    said, void = gradient.same_subspace()
    assert not void, said


def test_rows_are_found_again_by_their_keys():
    assert "gradient" in SECTIONS
    assert [pair.id for pair in gradient.PAIRS.values()] == ["P7", "P8", "P8", "P8", "P22"]
    assert len(gradient.ROWS) == len(gradient.PAIRS)
