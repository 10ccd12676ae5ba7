"""The overlap of a cell: over rounds and clients of a run, then over seeds, with chance beside it."""

from pathlib import Path

import numpy as np
import pytest

from accountant.events import NonPrivate
from privkit.audit.cells import Cell, cells
from privkit.audit.overlap import overlap
from privkit.release import Prototypes, Release
from privkit.store import Run, RunInfo, find
from privkit.truth import Hidden

GROUPS = np.array([0, 1, 1, 0, 1, 1, 1, 1], dtype=np.int64)


def recorded(path: Path, seed: int, shares: list[list[float | None]]) -> None:
    """Write a run in which each round's clients overlap as given."""
    info = RunInfo(
        cell="vpp", seed=seed, rounds=len(shares), clients=("a", "b"), num_classes=1, dim=8, promise=None
    )
    run = Run.create(path, info)
    run.write_answers()
    for t, by_client in enumerate(shares):
        releases = [
            Release(
                round=t,
                client=m,
                payload=Prototypes(vectors=np.full((1, 8), 10.0 * seed + t + m), labels=np.array([0])),
                event=NonPrivate(),
            )
            for m in (0, 1)
        ]
        hidden = {
            m: Hidden(np.zeros((1, 8)), GROUPS, overlap=None if share is None else np.array([share]))
            for m, share in enumerate(by_client)
        }
        run.commit(t, releases, hidden=hidden)


def cell_of(root: Path) -> Cell:
    return cells(find(root))[0]


def test_it_is_the_mean_of_a_run_and_then_of_seeds(tmp_path: Path) -> None:
    recorded(tmp_path / "0", 0, [[0.5, 1.0], [0.0, 0.5]])
    recorded(tmp_path / "1", 1, [[1.0, 1.0], [0.5, 0.5]])
    found = overlap(cell_of(tmp_path))
    assert found is not None
    assert found.share.mean == pytest.approx(0.625)
    assert found.share.std == pytest.approx(np.std([0.5, 0.75], ddof=1))
    assert found.chance == pytest.approx(2 / 8)


def test_clients_without_a_truth_are_left_out_and_a_cell_without_any_has_none(tmp_path: Path) -> None:
    recorded(tmp_path / "some", 0, [[0.5, None]])
    found = overlap(cell_of(tmp_path / "some"))
    assert found is not None
    assert found.share.mean == 0.5
    recorded(tmp_path / "none", 0, [[None, None]])
    assert overlap(cell_of(tmp_path / "none")) is None


def test_runs_of_before_there_was_a_meter_are_read(tmp_path: Path) -> None:
    """What was not kept has no name in the file, as in runs that never had it."""
    recorded(tmp_path, 0, [[None, None]])
    kept = Run(tmp_path).truth().hidden[0, 1]
    assert kept.overlap is None
    assert kept.counts is None
    assert np.array_equal(kept.groups, GROUPS)
