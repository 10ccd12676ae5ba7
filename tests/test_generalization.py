"""The generalization table: G, P and C of matrices by hand, the identity, conflicts from uploads, published rows."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from accountant.contract import Contract
from accountant.events import NonPrivate
from privkit import Recorder
from privkit.errors import InputError
from privkit.release import Update
from privkit.store import Run, find
from privkit.study import load
from privkit.train.loop import train
from privkit.transforms._measures import condition_numbers, orthogonality_errors
from reports.generalization import Generalization, by_identity, generalizations
from reports.generalization_published import published
from reports.generalization_table import generalization_table
from reports.head_conflict import conflict
from tests.test_tables_cli import Shell, shell  # noqa: F401

SETTINGS: dict[str, Any] = {
    "seeds": 2,
    "data": {"name": "digits", "domains": ["mnist", "pendigits", "syn"], "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "model": {"transform": "rotation", "temperature": 10.0, "first_head": "records"},
    "method": {"name": "fedot", "training": {"batch_size": 12, "learning_rate": 0.01}},
    "defense": {"name": "none"},
    "rounds": 3,
    "grid": {
        "method": {
            "fedot": {},
            "local": {"method": {"name": "local_only"}},
            "lt": {"model": {"transform": "linear"}},
        },
        "unseen": {name: {"held_out": name} for name in ("mnist", "pendigits", "syn")},
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generalization")
    (folder / "study.yaml").write_text(yaml.safe_dump(SETTINGS, sort_keys=False))
    train(load(folder / "study.yaml"), folder / "runs", device="cpu")
    return folder / "runs"


def named(runs: Path) -> list[tuple[str, list[Run]]]:
    found: dict[str, list[Run]] = {}
    for run in find(runs):
        found.setdefault(run.info.cell, []).append(run)
    return list(found.items())


@pytest.fixture(scope="module")
def found(runs: Path) -> dict[str, Generalization]:
    return {one.name: one for one in generalizations("runs", named(runs))}


def matrix(**values: Any) -> Generalization:
    held = {"run": "r", "name": "n", "config": {}, "domains": ("a", "b"), "matrices": {}, **values}
    return Generalization(**held)


# ---------------------------------------------------------------------- G, P, C


@given(st.integers(2, 6), st.integers(0, 99))
def test_the_identity_holds_in_every_seed(n, seed):
    a = np.random.default_rng(seed).random((n, n))
    one = matrix(matrices={3: a}, domains=tuple("abcdef"[:n]))
    g, p, c = (values[3] for values in (one.generalization(), one.personalization(), one.comprehensive()))
    assert g == pytest.approx(np.trace(a) / n)
    assert p == pytest.approx((a.sum() - np.trace(a)) / (n * n - n))
    assert c == pytest.approx(a.mean())
    assert by_identity(g, p, n) == pytest.approx(c)


def test_what_was_not_measured_has_no_number():
    one = matrix(matrices={0: np.array([[np.nan, 0.5], [0.7, np.nan]])})
    assert one.generalization() == {0: None}
    assert one.personalization() == {0: pytest.approx(0.6)}
    assert one.comprehensive() == {0: None}


def test_a_matrix_has_newcomers_on_its_diagonal_and_clients_beside_it(found, runs):
    import pyarrow.parquet as pq

    assert set(found) == {"fedot", "local", "lt"}
    one = found["fedot"]
    assert one.domains == ("mnist", "pendigits", "syn")
    for seed, a in one.matrices.items():
        for o, unseen in enumerate(one.domains):
            path = runs / f"fedot-{unseen}" / f"seed-{seed}" / "metrics.parquet"
            last = {r["domain"]: r["accuracy"] for r in pq.read_table(path).to_pylist() if r["round"] == 2}
            assert {name: a[o, i] for i, name in enumerate(one.domains)} == last
    assert found["local"].generalization() == {0: None, 1: None}
    assert None not in found["local"].personalization().values()


def test_maps_are_measured_after_training(found: dict[str, Any]):
    assert found["fedot"].orthogonality < 1e-5
    assert found["fedot"].condition == pytest.approx(1.0, abs=1e-4)
    assert found["lt"].orthogonality > 1e-3
    assert found["lt"].condition > 1.01
    assert found["local"].condition == pytest.approx(1.0, abs=1e-4)


def test_measures_of_maps_are_those_of_their_dense_matrices():
    blocks = torch.from_numpy(np.random.default_rng(0).standard_normal((3, 2, 4, 4)))
    for g in range(3):
        dense = torch.block_diag(*blocks[g])
        assert condition_numbers(blocks)[g].item() == pytest.approx(torch.linalg.cond(dense).item())
        error = (dense.T @ dense - torch.eye(8)).abs().max().item()
        assert orthogonality_errors(blocks)[g].item() == pytest.approx(error)


def test_two_cells_that_hold_out_the_same_are_refused(runs):
    cells = named(runs)
    with pytest.raises(InputError, match="both hold out mnist"):
        generalizations("runs", [*cells, ("again", dict(cells)["fedot-mnist"])])


# ---------------------------------------------------------------------- conflicts


def recorded(path: Path, rounds: list[list[dict[str, list[float]]]]) -> Run:
    event = NonPrivate(contract=Contract())
    with Recorder(
        path, clients=len(rounds[0]), rounds=len(rounds), num_classes=2, dim=3, promise=None
    ) as recorder:
        for t, sent in enumerate(rounds):
            for m, named in enumerate(sent):
                arrays = {name: np.array([a], np.float32) for name, a in named.items()}
                recorder.record(round=t, client=m, payload=Update(named=arrays, means="weights"), event=event)
    return Run(path)


def head(*values: float) -> dict[str, list[float]]:
    return {"head.vectors": list(values), "transform.x": [9.0 * sum(values)]}


def test_the_conflict_is_the_mean_cosine_of_what_clients_made_of_the_mean(tmp_path):
    """By hand: from (0, 0) to (1, 0) and (1, 1), 45 degrees; from (1, 1/2) by (0, 1) and (0, -2), opposed."""
    rounds = [[head(0, 0), head(0, 0)], [head(1, 0), head(1, 1)], [head(1, 1.5), head(1, -1.5)]]
    assert conflict(recorded(tmp_path / "run", rounds)) == pytest.approx((np.sqrt(0.5) - 1) / 2, abs=1e-6)


def test_a_client_that_did_not_move_is_in_no_pair(tmp_path):
    rounds = [[head(0, 0)] * 3, [head(0, 0), head(1, 0), head(2, 0)]]
    assert conflict(recorded(tmp_path / "run", rounds)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "rounds",
    [
        [[head(0, 0), head(0, 0)]],
        [[head(0, 0)], [head(1, 0)]],
        [[head(0, 0), head(0, 0)], [head(0, 0), head(0, 0)]],
        [[{"transform.x": [0.0]}] * 2, [{"transform.x": [1.0]}] * 2],
    ],
    ids=["one round", "one client", "nobody moved", "no head"],
)
def test_without_two_updates_of_a_head_there_is_no_conflict(tmp_path, rounds):
    assert conflict(recorded(tmp_path / "run", rounds)) is None


# ---------------------------------------------------------------------- the table


def test_a_table_has_a_row_for_each_domain_held_out_and_one_of_all(found):
    table = generalization_table(list(found.values()))
    rows = [row for row in table.records() if row["cell"] == "fedot"]
    assert [row["unseen"] for row in rows] == ["mnist", "pendigits", "syn", "all"]
    mean = np.mean(list(found["fedot"].matrices.values()), axis=0)
    for o, row in enumerate(rows[:3]):
        assert [row[f"on_{name}"] for name in found["fedot"].domains] == pytest.approx(mean[o].tolist())
    assert rows[3]["g"] == pytest.approx(np.diag(mean).mean())
    assert rows[3]["c"] == pytest.approx(mean.mean())
    assert rows[3]["c_by_identity"] == pytest.approx(rows[3]["c"])
    assert rows[3]["g_std"] == pytest.approx(np.std(list(found["fedot"].generalization().values()), ddof=1))
    local = next(row for row in table.records() if row["cell"] == "local" and row["unseen"] == "all")
    assert (local["g_text"], local["c_text"]) == ("n/a", "n/a")
    assert "no model for newcomers" in local["reason"]
    text = table.markdown()
    assert f"{rows[3]['g']:.3f} ± {rows[3]['g_std']:.3f}" in text
    assert "docs/fedot.md" in text


def test_a_domain_that_was_not_held_out_is_named(runs):
    some = [(name, own) for name, own in named(runs) if name in ("fedot-mnist", "fedot-syn")]
    (one,) = generalizations("runs", some)
    assert set(one.domains) == {"mnist", "pendigits", "syn"}
    row = generalization_table([one]).records()[-1]
    assert row["reason"] == "not held out: pendigits"
    assert row["g"] is None


def test_published_rows_are_kept_as_printed_and_held_against_the_identity():
    rows = {row.method: row for row in published()}
    assert {name for name, row in rows.items() if not row.agrees} == {"FedLT", "VPT", "FedAdapter", "FedOT"}
    residual = {name: float(row.c) - row.given for name, row in rows.items() if row.c and row.given}
    assert residual["FedOT(+B)"] == pytest.approx(0, abs=0.011)
    assert residual["FedOT"] == pytest.approx(-0.0175, abs=1e-9)
    assert residual["FedLT"] == pytest.approx(-0.775, abs=1e-9)
    table = generalization_table([], published=rows.values(), percent=True)
    assert "84.24 (its G and P give 85.02)" in table.markdown()
    assert all(row["source"] == "published" for row in table.records())
    assert sum(row["g"] == pytest.approx(0.7867) for row in table.records()) == 1


def test_the_command_prints_it_in_every_format(shell, runs):  # noqa: F811
    code, out, _ = shell("table", "generalization", runs, "--percent", "--beside", "paper")
    assert code == 0
    assert "| fedot |" in out
    assert "published: FedOT, main table" in out
    _, out, _ = shell("table", "generalization", runs, "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(out)))) == 12
    _, out, _ = shell("table", "generalization", runs, "--format", "json")
    assert {row["unseen"] for row in json.loads(out)["rows"]} == {"mnist", "pendigits", "syn", "all"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("--against", "none"), "--against compares cells"), ((), "holds out a domain")],
)
def test_the_command_refuses_what_it_cannot_print(shell, recorded_copy, arguments, said):  # noqa: F811
    code, _, err = shell("table", "generalization", recorded_copy, *arguments)
    assert code != 0
    assert said in " ".join(err.split())
