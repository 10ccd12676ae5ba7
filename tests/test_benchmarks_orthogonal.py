"""The rows of rotations: both sides do the same, the comparison would see it if not, and rows are found again."""

import numpy as np
import pytest

from benchmarks import orthogonal
from benchmarks.__main__ import SECTIONS
from benchmarks.orthogonal_peers import parametrized


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orthogonal, "DIM", 16)
    monkeypatch.setattr(orthogonal, "BATCH", 6)
    batch = {"batch_size": 6}
    monkeypatch.setattr(orthogonal, "PLAIN", orthogonal.PLAIN.model_copy(update=batch))
    monkeypatch.setattr(orthogonal, "STEP", orthogonal.STEP.model_copy(update=batch))


@pytest.mark.parametrize("blocks", [1, 8])
def test_a_step_of_torchs_parametrisation_is_ours_and_a_wrong_one_is_seen(blocks, monkeypatch):
    said, void = orthogonal.same_step(blocks)
    assert not void, said
    forward = parametrized.Rotation.forward
    monkeypatch.setattr(
        parametrized.Rotation, "forward", lambda self, h: forward(self, 1.001 * forward(self, h))
    )
    said, void = orthogonal.same_step(blocks)
    assert void, said


def test_rows_are_rotated_alike_and_a_difference_is_seen(monkeypatch):
    said, void = orthogonal.same_rows()
    assert not void, said
    monkeypatch.setattr(orthogonal, "rotate", lambda x, h: orthogonal.made(x, h) * (1 + 1e-6))
    said, void = orthogonal.same_rows()
    assert void, said


def test_every_row_can_be_timed_and_found_again_by_its_child(monkeypatch):
    monkeypatch.setattr(orthogonal, "CLIENTS", 2)
    assert {p.id for p in orthogonal.PAIRS.values()} == {"O1", "O1b", "O2", "O3", "O3b"}
    for found in orthogonal.PAIRS.values():
        assert found.module == "benchmarks.orthogonal"
        assert orthogonal.PAIRS[found.key] is found
        for side in (found.ours(), found.theirs()):
            side()
    assert "orthogonal" in SECTIONS
    assert len(orthogonal.ROWS) == 5


@pytest.mark.parametrize("peer", [orthogonal.on_matrices, orthogonal.on_diagonals])
def test_barycenters_are_alike_and_a_difference_is_seen(peer, monkeypatch):
    said, void = orthogonal.same_barycenter(peer)
    assert not void, said
    monkeypatch.setattr(orthogonal, "STEPS", 12)
    said, void = orthogonal.same_barycenter(peer)
    assert void, said


def test_rotations_begin_away_from_the_identity_as_a_lower_triangle():
    x = orthogonal.federation(8, clients=1).start["transform.x"]
    assert np.array_equal(x, np.tril(x, -1))
    assert np.abs(x).max() > 0
