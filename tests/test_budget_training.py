"""Training under a budget: it ends before the round that would exceed it, and the ledger proves it after any kill."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from accountant.accountants import smallest
from accountant.budget import Budget, BudgetExceededError
from accountant.claims import claim
from accountant.events import Composed, Gaussian, Repeated
from accountant.gaussian import epsilon_from_mu
from privkit.audit.cells import cells
from privkit.audit.promised import promised, worst_event
from privkit.cli import main
from privkit.cli.app import app
from privkit.config import RunConfig
from privkit.defenses.igpp import GaussianMeans
from privkit.errors import InputError
from privkit.store import Run
from privkit.study import Study, load, merged
from privkit.train.loop import train
from tests.test_train import SETTINGS, assert_same, kill, needs_fork, tree, uploads, written_at

DEFENSE = {"name": "igpp", "epsilon": 8.0}
# Noise for epsilon 8 over four rounds: two of them cost 5.30, three 6.73.
BASE: dict[str, Any] = {
    **{key: SETTINGS[key] for key in ("data", "encoder", "model", "method", "canaries")},
    "defense": DEFENSE,
    "rounds": 4,
    "cells": {"capped": {"budget": {"epsilon": 6.0}}, "free": {}},
}
RUNS = ("capped/seed-0", "free/seed-0")


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a kill does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(merged(BASE, changes), sort_keys=False))
    return path


def single(folder: Path, **changes: Any) -> Study:
    """Return a study of one run."""
    path = folder / "single.yaml"
    path.write_text(
        yaml.safe_dump(merged({k: v for k, v in BASE.items() if k != "cells"}, changes), sort_keys=False)
    )
    return load(path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a study trained without interruption; do not change it."""
    root = tmp_path_factory.mktemp("capped") / "runs"
    train(load(write(root.parent)), root, device="cpu")
    return root


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "runs")


# ---------------------------------------------------------------------- it stops, and the ledger proves it


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run of the shipped configuration, with fewer records and canaries."""
    folder = tmp_path_factory.mktemp("twelve")
    settings = yaml.safe_load(Path("configs/budget.yaml").read_text())
    small = {"data": {"per_class": 10}, "canaries": {"count": 20}}
    (folder / "budget.yaml").write_text(yaml.safe_dump(merged(settings, small)))
    (path,) = train(load(folder / "budget.yaml"), folder / "run", device="cpu")
    return path


def test_training_stops_before_round_13_of_20_and_the_ledger_proves_it(twelve: Path) -> None:
    run = Run(twelve)
    assert (run.complete, run.ended, run.completed, run.rounds, run.info.rounds) == (True, True, 12, 12, 20)
    lines = [json.loads(line) for line in (twelve / "ledger.jsonl").read_text().splitlines()]
    assert [(e["round"], e["client"]) for e in lines[:-1]] == [(t, m) for t in range(12) for m in range(4)]
    assert (lines[-1]["round"], lines[-1]["client"]) == (12, 0)
    assert run.stopped is not None
    why = lines[-1]["stop"]
    sigma = lines[0]["event"]["noise_multiplier"]
    assert why["budget"] == {"epsilon": 6.0, "delta": 1e-5, "adaptive": False}
    for rounds, key in ((12, "spent"), (13, "exceeds")):
        assert why[key] == pytest.approx(epsilon_from_mu(mu=rounds**0.5 / sigma, delta=1e-5), rel=1e-9)
    assert why["spent"] <= 6 < why["exceeds"]
    before = [(r.round, r.client, r.event) for r in run.transcript().releases if r.round < 11]
    refuted = run.stopped.refuted_by(budget=run.budget, clients=4, rounds=12, released=before)
    assert refuted == "the client's releases leave room for one more"


def test_nothing_of_the_thirteenth_round_is_there(twelve: Path) -> None:
    assert sorted(path.name for path in (twelve / "uploads").iterdir())[-1] == "round-000011.safetensors"
    assert sorted(path.name for path in (twelve / "truth").iterdir())[-1] == "round-000011.safetensors"
    assert sorted(path.name for path in (twelve / "state").iterdir())[-1] == "round-000012.safetensors"


def test_no_mechanism_runs_after_its_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = GaussianMeans.privatize

    def counted(self: GaussianMeans, embeddings: Any, noise: Any, *rest: Any) -> Any:
        if type(noise).__name__ != "NoNoise":
            drawn.append(len(embeddings.labels))
        return real(self, embeddings, noise, *rest)

    monkeypatch.setattr(GaussianMeans, "privatize", counted)
    train(single(tmp_path, budget={"epsilon": 6.0}), tmp_path / "run", device="cpu")
    assert len(drawn) == 2 * 2


def test_a_mechanism_that_spends_more_than_it_says_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = GaussianMeans.privatize

    def louder(self: GaussianMeans, embeddings: Any, noise: Any, *rest: Any) -> Any:
        sent = real(self, embeddings, noise, *rest)
        return sent._replace(event=Gaussian(noise_multiplier=self.noise_multiplier / 2))

    monkeypatch.setattr(GaussianMeans, "privatize", louder)
    with pytest.raises(
        InputError, match=r"GaussianMeans said .* round 0 would cost .*; let event\(\) return what"
    ):
        train(single(tmp_path, budget={"epsilon": 6.0}), tmp_path / "run", device="cpu")
    assert Run(tmp_path / "run").completed == 0


def test_a_flipped_byte_of_the_stop_is_found_by_its_line(twelve: Path, tmp_path: Path) -> None:
    root = shutil.copytree(twelve, tmp_path / "run")
    sound = (root / "ledger.jsonl").read_bytes()
    place = sound.rindex(b'"exceeds"') + 12
    (root / "ledger.jsonl").write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
    for read in (lambda: Run(root).stopped, Run(root).transcript):
        with pytest.raises(InputError, match="line 49 does not match its hash"):
            read()
    (root / "ledger.jsonl").write_bytes(b"".join(sound.splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match=r"was cut: it holds 48 whole lines where run\.json anchors 49"):
        Run(root).transcript()


def test_a_run_that_only_says_it_ended_is_refused(finished: Path, tmp_path: Path) -> None:
    root = shutil.copytree(finished / RUNS[1], tmp_path / "run")
    document = json.loads((root / "run.json").read_text())
    document["progress"]["ended"] = True
    (root / "run.json").write_text(json.dumps(document))
    with pytest.raises(
        InputError, match="says that the run ended, and the ledger's last line does not say why"
    ):
        _ = Run(root).stopped


# ---------------------------------------------------------------------- batches


def test_a_capped_run_stops_and_its_free_sibling_goes_on(finished: Path) -> None:
    capped, free = (Run(finished / name) for name in RUNS)
    assert (capped.completed, capped.ended, free.completed, free.ended) == (2, True, 4, False)
    assert free.stopped is None
    assert capped.batch == free.batch == list(RUNS)
    assert capped.stopped is not None
    assert capped.stopped.sentence(client="mnist", completed=2, planned=4).startswith(
        "stopped before round 3 of 4: mnist has spent epsilon 5.29761"
    )


def test_a_sibling_that_stops_changes_no_upload_of_the_others(finished: Path, tmp_path: Path) -> None:
    train(
        load(write(tmp_path, cells={"capped": {"budget": {"epsilon": 80.0}}})),
        tmp_path / "runs",
        device="cpu",
    )
    for (_, _, mine), (_, _, theirs) in zip(
        uploads(tmp_path / "runs" / RUNS[1]), uploads(finished / RUNS[1]), strict=True
    ):
        assert np.array_equal(mine.vectors, theirs.vectors)
    assert Run(tmp_path / "runs" / RUNS[0]).completed == 4
    assert uploads(tmp_path / "runs" / RUNS[0])[3][2].vectors == pytest.approx(
        uploads(finished / RUNS[0])[3][2].vectors
    )


def test_no_client_ever_spent_more_than_its_budget(finished: Path) -> None:
    transcript = Run(finished / RUNS[0]).transcript()
    for client in transcript.clients:
        cost = transcript.cost(client)
        assert smallest(cost, delta=1e-5).epsilon <= 6
        last = transcript.releases[-1].event
        assert smallest(Composed(events=(cost, last)), delta=1e-5).epsilon > 6


def test_training_a_stopped_study_again_writes_nothing(copy: Path) -> None:
    before = written_at(copy)
    train(load(write(copy.parent)), copy, device="cpu")
    assert written_at(copy) == before


def test_a_removed_sibling_is_rebuilt_beside_a_stopped_run(copy: Path, finished: Path) -> None:
    shutil.rmtree(copy / RUNS[1])
    before = written_at(copy)
    train(load(write(copy.parent)), copy, device="cpu")
    assert_same(copy, finished)
    assert {name: t for name, t in written_at(copy).items() if name in before} == before


def test_a_removed_stopped_run_stops_again(copy: Path, finished: Path) -> None:
    shutil.rmtree(copy / RUNS[0])
    train(load(write(copy.parent)), copy, device="cpu")
    assert_same(copy, finished)


def test_a_changed_budget_is_refused_by_name(copy: Path) -> None:
    before = tree(copy)
    changed = load(write(copy.parent, cells={"capped": {"budget": {"epsilon": 7.0}}}))
    with pytest.raises(InputError, match=r"another config\.budget\.epsilon: 6\.0 there, 7\.0 now"):
        train(changed, copy, device="cpu")
    assert tree(copy) == before


def test_a_selection_beside_the_noise_is_counted(tmp_path: Path) -> None:
    noisy = {"defense": {"name": "vpp", "epsilon": 8.0}, "budget": {"epsilon": 6.0}}
    (path,) = train(single(tmp_path, **noisy), tmp_path / "run", device="cpu")
    run = Run(path)
    spent = run.transcript().cost(0)
    assert run.ended
    assert 0 < run.completed < 4
    assert Budget(epsilon=6.0, delta=1e-5).spent(spent) <= 6
    assert run.stopped is not None
    assert run.stopped.spent == pytest.approx(Budget(epsilon=6.0, delta=1e-5).spent(spent))


@pytest.mark.parametrize("name", ["igpp", "vpp"])
def test_a_budget_that_is_the_promise_holds_every_round(tmp_path: Path, name: str) -> None:
    settings = {
        "defense": {"name": name, "epsilon": 8.0},
        "budget": {"epsilon": 8.0, "on_exhausted": "refuse"},
    }
    (path,) = train(single(tmp_path, **settings), tmp_path / "run", device="cpu")
    assert (Run(path).completed, Run(path).ended) == (4, False)


def test_every_architecture_of_a_mixed_federation_stops_with_its_run(tmp_path: Path) -> None:
    mixed = [
        {"encoder": "usps_cnn", "model": {"adapter": 3}},
        {"encoder": "usps_cnn", "model": {"hidden": [9]}},
    ]
    study = load(write(tmp_path, mixed=mixed))
    train(study, tmp_path / "runs", device="cpu")
    capped, free = (Run(tmp_path / "runs" / name) for name in RUNS)
    assert (capped.completed, capped.ended, free.completed, free.ended) == (2, True, 4, False)
    for fleet in (0, 1):
        assert capped.state(2)[f"{fleet}:steps.all"].tolist() == [12]  # 30 records, 12 at a time, 2 epochs
        assert free.state(4)[f"{fleet}:steps.all"].tolist() == [24]
    shutil.copytree(tmp_path / "runs", tmp_path / "through")
    shutil.rmtree(tmp_path / "runs" / RUNS[0])
    train(study, tmp_path / "runs", device="cpu")
    assert_same(tmp_path / "runs", tmp_path / "through")


# ---------------------------------------------------------------------- kills

# Renames: 10 to begin two runs, 5 for each of their rounds, 1 for the stop (after 30), 2 for the times.
MOMENTS = {
    29: [2, 1, False],
    30: [2, 2, False],  # the stop is in the ledger, and not yet in run.json
    31: [2, 2, True],
    34: [2, 2, True],
    36: [2, 3, True],
    41: [2, 4, True],
}


@pytest.fixture(scope="module")
def killed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    shutil.rmtree(shutil.copytree(finished, folder / "rebuilt") / RUNS[0])
    at_moments = [(moment, folder / str(moment)) for moment in MOMENTS]
    ends = kill(write(folder), *at_moments, *[(13, folder / "again")] * 5, (15, folder / "rebuilt"))
    assert ends[: len(MOMENTS)] == [-9] * len(MOMENTS)
    assert ends[-2:] == [0, -9]
    return folder


@needs_fork
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_training_killed_around_its_stop_goes_on_to_the_same_bytes(
    finished: Path, killed: Path, moment: int
) -> None:
    capped, free = (Run(killed / str(moment) / name) for name in RUNS)
    assert [capped.completed, free.completed, capped.ended] == MOMENTS[moment]
    train(load(write(killed)), killed / str(moment), device="cpu")
    assert_same(killed / str(moment), finished)


@needs_fork
def test_a_stop_is_in_the_ledger_before_run_json_says_so(
    killed: Path, finished: Path, tmp_path: Path
) -> None:
    root = tmp_path / "runs"
    kill(write(tmp_path), (30, root))
    run = Run(root / RUNS[0])
    whole = (finished / RUNS[0] / "ledger.jsonl").read_bytes()
    assert (root / RUNS[0] / "ledger.jsonl").read_bytes() == whole
    assert run.anchor.bytes < len(whole)
    assert not run.complete
    assert len(run.entries()) == 4


@needs_fork
def test_a_training_killed_again_and_again_ends_with_the_same_bytes(finished: Path, killed: Path) -> None:
    assert_same(killed / "again", finished)


@needs_fork
def test_rebuilding_a_stopped_run_survives_a_kill(finished: Path, killed: Path) -> None:
    train(load(write(killed)), killed / "rebuilt", device="cpu")
    assert_same(killed / "rebuilt", finished)


# ---------------------------------------------------------------------- refusals


def test_a_plan_that_must_not_stop_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    plan = single(tmp_path, budget={"epsilon": 6.0, "on_exhausted": "refuse"})
    with pytest.raises(
        BudgetExceededError,
        match=r"cell single: mnist would exceed its budget in round 3 of 4: epsilon 5\.\d+ before it, 6\.\d+ after "
        r"it, and the budget is epsilon 6 at delta 1e-05; train 2 rounds, release with more noise, raise",
    ):
        train(plan, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_budget_without_room_for_one_round_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BudgetExceededError, match="in round 1 of 4: epsilon 0 before it, 3"):
        train(single(tmp_path, budget={"epsilon": 1.0}), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_release_without_noise_fits_no_budget(tmp_path: Path) -> None:
    plan = single(tmp_path, defense={"name": "none"}, budget={"epsilon": 1e6})
    with pytest.raises(
        BudgetExceededError, match=r"epsilon 0 before it, inf after it.* take a defense that promises"
    ):
        train(plan, tmp_path / "run", device="cpu")


def test_what_was_chosen_from_outputs_needs_an_adaptive_budget(tmp_path: Path) -> None:
    chosen = {**DEFENSE, "hyperparameters": "past private outputs"}
    with pytest.raises(InputError, match=r"cell single: .* set adaptive to true"):
        train(single(tmp_path, defense=chosen, budget={"epsilon": 6.0}), tmp_path / "run", device="cpu")
    plan = single(tmp_path, defense=chosen, budget={"epsilon": 6.0, "adaptive": True})
    (path,) = train(plan, tmp_path / "run", device="cpu")
    assert Run(path).completed == 2


def test_a_method_that_releases_nothing_has_nothing_to_spend(tmp_path: Path) -> None:
    local = {"name": "local_only", "training": SETTINGS["method"]["training"]}
    (path,) = train(single(tmp_path, method=local, budget={"epsilon": 0.01}), tmp_path / "run", device="cpu")
    assert (Run(path).completed, Run(path).ended, Run(path).budget) == (4, False, None)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        ({"epsilon": 0}, "budget.epsilon"),
        ({"epsilon": 1, "delta": 1.0}, "budget.delta"),
        ({"delta": 1e-5}, "budget.epsilon"),
        ({"epsilon": 1, "on_exhausted": "explode"}, "budget.on_exhausted"),
        ({"epsilon": True}, "budget.epsilon"),
        ({"epsilon": 1, "rounds": 3}, "rounds"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused_by_name(budget: dict[str, Any], text: str) -> None:
    settings = {k: v for k, v in BASE.items() if k != "cells"} | {"budget": budget}
    with pytest.raises(InputError, match=text):
        RunConfig.from_settings(settings, where="here")


# ---------------------------------------------------------------------- the command line, and what reads runs


def test_train_says_which_cell_stopped(tmp_path: Path, finished: Path) -> None:
    shutil.copytree(finished, tmp_path / "runs")
    done = CliRunner().invoke(app, ["train", str(write(tmp_path)), "--out", str(tmp_path / "runs")])
    assert done.exit_code == 0
    assert "cell capped (seed 0) stopped before round 3 of 4: mnist has spent epsilon 5.29761" in done.output
    assert "cell free" not in done.output


def test_a_refused_plan_ends_with_code_2_and_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write(tmp_path, cells={"capped": {"budget": {"on_exhausted": "refuse"}}})
    monkeypatch.setattr("sys.argv", ["privkit", "train", str(config), "--out", str(tmp_path / "runs")])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "privkit: cell capped: mnist would exceed its budget in round 3 of 4" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_stopped_run_is_a_whole_cell(finished: Path, tmp_path: Path) -> None:
    (cell,) = cells([Run(finished / RUNS[0])])
    assert (cell.rounds, cell.delta) == (2, 1e-5)
    other = shutil.copytree(finished / RUNS[1], tmp_path / "other")
    document = json.loads((other / "run.json").read_text())
    document["run"] |= {k: v for k, v in Run(finished / RUNS[0]).info.to_dict().items() if k != "seed"}
    (other / "run.json").write_text(json.dumps(document | {"run": document["run"] | {"seed": 1}}))
    with pytest.raises(
        InputError, match=r"ended after 2 rounds and .* after 4; audit them in separate folders"
    ):
        cells([Run(finished / RUNS[0]), Run(other)])


def test_audit_report_and_table_work_on_what_stopped(copy: Path) -> None:
    for words in (["audit", "--run"], ["report", "--run"], ["table", "attacks"]):
        done = CliRunner().invoke(app, [*words, str(copy)])
        assert done.exit_code == 0, done.output
    audit = json.loads((copy / "audit" / "audit.json").read_text())
    (capped,) = [cell for cell in audit["cells"] if cell["cell"] == "capped"]
    spent = Repeated(event=Run(copy / RUNS[0]).transcript().releases[0].event, count=2)
    assert capped["epsilon"] == pytest.approx(smallest(spent, delta=1e-5).epsilon)
    assert (capped["epsilon_stated"], capped["releases"]) == (8.0, 2)


def test_noise_chosen_from_outputs_is_covered_by_the_filter_that_held_it(tmp_path: Path) -> None:
    frozen = {"model": {"adapter": None}, "defense": {**DEFENSE, "hyperparameters": "past private outputs"}}
    capped = single(tmp_path, **frozen, budget={"epsilon": 6.0, "adaptive": True})
    (path,) = train(capped, tmp_path / "run", device="cpu")
    (cell,) = cells([Run(path)])
    transcript = Run(path).transcript()
    event = worst_event([transcript], delta=1e-5)
    assert event is not None
    found = promised(cell, event, [transcript]).claim
    assert (found.covered, found.method) == (True, "Gaussian filter")
    assert found.epsilon == pytest.approx(6.0, rel=1e-9)  # not the 5.3 that two rounds cost
    assert not claim(event, delta=1e-5).covered
