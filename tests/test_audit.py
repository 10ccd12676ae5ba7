"""End to end: train, audit, verdict and exit code, through the command line."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import privkit
from accountant.accountants import smallest
from accountant.contract import Contract, Counts, DependsOn, Relation
from accountant.events import Gaussian, Repeated
from privkit.audit.run import of_model
from privkit.cli import main
from privkit.config import RunConfig
from privkit.release import Prototypes

BASE = {
    "data": {"name": "digits", "per_class": 40},
    "encoder": {"name": "usps_cnn"},
    "rounds": 3,
    "method": {"name": "fedproto", "predict": "prototype"},
    "defense": {"name": "igpp", "epsilon": 2.0},
    "canaries": {"count": 256, "norm": 3.0},
}


class Shell:
    """Runs commands as a user would, and keeps what they printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["privkit", *map(str, arguments)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self.capsys.readouterr()
        return int(stop.value.code or 0), out, err


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def configured(folder: Path, **changes: object) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**BASE, **changes}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained study: covered, uncovered, undefended and silent cells, two seeds."""
    from privkit.study import load
    from privkit.train.loop import train

    folder = tmp_path_factory.mktemp("study")
    cells = {
        "plain": {"defense": {"name": "none"}},
        "covered": {},
        "adapter": {"model": {"adapter": 4}},
        "local": {"method": {"name": "local_only"}},
    }
    config = configured(folder, cells=cells, seeds=2)
    train(load(config), folder / "runs")
    return folder / "runs"


def copied(study: Path, folder: Path, cell: str = "covered") -> Path:
    shutil.copytree(study / cell, folder / cell)
    return folder / cell


def test_the_table_answers_all_three_questions(study: Path, tmp_path: Path, shell: Shell) -> None:
    shutil.copytree(study, tmp_path / "runs")
    code, out, _ = shell("audit", "--run", tmp_path / "runs", "--json")
    found = json.loads(out)
    cells = {row["cell"]: row for row in found["cells"]}
    assert code == 0
    assert cells["covered"]["verdict"] == "OK"
    assert cells["covered"]["epsilon"] == pytest.approx(2.0, rel=1e-6)
    assert cells["covered"]["epsilon"] <= 2.0
    assert cells["adapter"]["verdict"] == cells["plain"]["verdict"] == "NOT COVERED"
    assert "A1" in cells["adapter"]["reasons"]
    assert cells["plain"]["epsilon"] is None
    assert cells["local"]["verdict"] == "OK"
    assert cells["local"]["bytes_per_round"] == 0
    assert all(0 < row["accuracy"] <= 1 for row in found["cells"])
    attacks = {(row["cell"], row["attack"]): row for row in found["attacks"]}
    for cell in ("plain", "covered", "adapter"):
        for attack in ("cosine", "likelihood_ratio", "antipodal"):
            row = attacks[cell, attack]
            assert row["auc_low"] <= row["auc"] <= row["auc_high"]
            assert row["n_members"] > 0
            assert row["auc_null"] == 0.5
            assert (row["auc_ceiling"] is not None) == (cell == "covered")


def test_every_ceiling_holds_in_a_correct_run(study: Path, tmp_path: Path, shell: Shell) -> None:
    run = copied(study, tmp_path)
    _, out, _ = shell("audit", "--run", run, "--json")
    for row in json.loads(out)["attacks"]:
        assert row["adjusted_p"] is None or row["adjusted_p"] > 0.001
        assert row["auc_low"] <= row["auc_ceiling"]


def test_files_agree_with_each_other(study: Path, tmp_path: Path, shell: Shell) -> None:
    import csv

    run = copied(study, tmp_path)
    shell("audit", "--run", run)
    document = json.loads((run / "audit" / "audit.json").read_text())
    with (run / "audit" / "attacks.csv").open() as handle:
        rows = list(csv.DictReader(handle))
    assert [float(row["auc"]) for row in rows] == [row["auc"] for row in document["attacks"]]
    page = (run / "audit" / "audit.md").read_text()
    for row in document["attacks"]:
        assert f"{row['auc']:.3f}" in page
    claims = json.loads((run / "audit" / "claims.json").read_text())
    assert claims["covered"]["epsilon"] == document["cells"][0]["epsilon"]


def test_the_best_f1_is_that_of_the_kept_scores_and_stands_beside_chance(
    study: Path, tmp_path: Path, shell: Shell
) -> None:
    import pyarrow.parquet as pq
    from sklearn.metrics import f1_score

    from privkit import store

    run = copied(study, tmp_path)
    _, out, _ = shell("audit", "--run", run, "--json")
    row = next(r for r in json.loads(out)["attacks"] if r["attack"] == "cosine")
    runs = store.find(run)
    scores = np.concatenate([pq.read_table(r.path / "audit" / "cosine.parquet")["score"] for r in runs])
    members = np.concatenate([r.truth().members for r in runs])
    best = max(f1_score(members, scores >= t) for t in np.unique(scores))
    assert row["f1_best"] == pytest.approx(best, rel=1e-12)
    assert 2 / (2 + (~members).sum() / members.sum()) < row["f1_best_null"] < 0.7
    assert "optimistic" in row["f1_best_kind"]


def test_auditing_twice_gives_the_same_bytes(study: Path, tmp_path: Path, shell: Shell) -> None:
    run = copied(study, tmp_path)
    shell("audit", "--run", run)
    first = {p.name: p.read_bytes() for p in sorted((run / "audit").iterdir())}
    shell("audit", "--run", run)
    shutil.rmtree(run / "seed-0" / "audit")
    shell("audit", "--run", run)
    assert {p.name: p.read_bytes() for p in sorted((run / "audit").iterdir())} == first


def test_half_the_noise_is_a_violation_and_its_twin_is_not(tmp_path: Path, shell: Shell) -> None:
    fault = {"name": "faulty_igpp", "claims": {"epsilon": 2.0}, "fault": {"name": "low_noise"}}
    config = configured(tmp_path, cells={"fault": {"defense": fault}, "twin": {}})
    assert shell("train", config, "--out", tmp_path / "runs")[0] == 0
    code, out, _ = shell("audit", "--run", tmp_path / "runs" / "fault")
    assert code == 3
    assert "VIOLATION" in out
    assert "of what was claimed" in out
    assert shell("audit", "--run", tmp_path / "runs" / "twin")[0] == 0


def test_canaries_alone_catch_half_the_noise(tmp_path: Path, shell: Shell) -> None:
    """Without clean prototypes only the planted records can show it."""
    fault = {"name": "faulty_igpp", "claims": {"epsilon": 8.0}, "fault": {"name": "low_noise"}}
    config = configured(tmp_path, defense=fault, canaries={"count": 512, "norm": 3.0})
    shell("train", config, "--out", tmp_path / "run")
    for clean in (tmp_path / "run" / "truth").glob("round-*"):
        clean.unlink()
    code, out, _ = shell("audit", "--run", tmp_path / "run")
    assert code == 3
    assert "antipodal" in out


def test_exit_codes_that_must_be_asked_for(study: Path, tmp_path: Path, shell: Shell) -> None:
    adapter = copied(study, tmp_path, "adapter")
    assert shell("audit", "--run", adapter)[0] == 0
    assert shell("audit", "--run", adapter, "--fail-on", "uncovered")[0] == 5
    weak = configured(tmp_path, canaries={"count": 0, "norm": 3.0})
    shell("train", weak, "--out", tmp_path / "weak")
    for clean in (tmp_path / "weak" / "truth").glob("round-*"):
        clean.unlink()
    code, out, _ = shell("audit", "--run", tmp_path / "weak", "--fail-on", "inconclusive")
    assert code == 4
    assert "canaries in all would settle it" in out


def test_an_attack_that_breaks_is_listed_and_the_others_run(
    study: Path, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attacks.membership.cosine import Cosine

    run = copied(study, tmp_path)
    monkeypatch.setattr(Cosine, "score", lambda self, view, candidates: np.full(len(candidates), np.nan))
    code, out, _ = shell("audit", "--run", run, "--json")
    assert code == 6
    found = json.loads(out)
    assert "cosine" in found["failed_attacks"][0]
    assert {r["attack"] for r in found["attacks"] if r["auc"] is not None} == {
        "distance",
        "inner_product",
        "likelihood_ratio",
        "shadow",
        "tracing",
        "antipodal",
    }


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda run: _cut(run / "uploads" / "round-000001.safetensors"), "damaged or cut short"),
        (lambda run: _cut(run / "ledger.jsonl"), "was cut"),
        (lambda run: _flip(run / "ledger.jsonl"), "was changed"),
        (lambda run: _edit(run / "run.json", '"schema": 1', '"schema": 99'), "schema 99"),
        (lambda run: _spoil_candidates(run), "not finite"),
        (lambda run: _edit(run / "run.json", '"rounds": 3\n', '"rounds": 2\n'), "stopped after 2 of 3"),
        (lambda run: shutil.rmtree(run), "does not exist"),
    ],
)
def test_bad_runs_are_refused_in_one_sentence(
    study: Path, tmp_path: Path, shell: Shell, spoil: object, complaint: str
) -> None:
    run = copied(study, tmp_path) / "seed-0"
    shutil.rmtree(run / "audit", ignore_errors=True)
    assert callable(spoil)
    spoil(run)
    code, out, err = shell("audit", "--run", run)
    assert code == 2
    assert complaint in err
    assert len(err.strip().splitlines()) <= 2
    assert "Traceback" not in err
    assert not (run / "audit").exists()
    assert out == ""


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda run: shutil.rmtree(run / "truth"), "truth"),
        (lambda run: (run / "truth" / "round-000001.safetensors").write_bytes(b"x"), "truth"),
        (lambda run: _repeat_a_member(run), "same record"),
    ],
)
def test_without_the_truth_every_cell_keeps_its_scores_and_nothing_else(
    study: Path, tmp_path: Path, shell: Shell, spoil: object, complaint: str
) -> None:
    cells = [copied(study, tmp_path, cell) for cell in ("covered", "plain")]
    runs = [cell / f"seed-{seed}" for cell in cells for seed in (0, 1)]
    for run in runs:
        shutil.rmtree(run / "audit", ignore_errors=True)
        assert callable(spoil)
        spoil(run)
    code, out, err = shell("audit", "--run", tmp_path)
    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.strip().splitlines()) <= 2
    assert "Traceback" not in err
    for run in runs:
        assert sorted(path.name for path in (run / "audit").iterdir()) == SCORES
    assert not (tmp_path / "audit").exists()


def test_deleting_the_truth_changes_no_score(study: Path, tmp_path: Path, shell: Shell) -> None:
    run = copied(study, tmp_path)
    shutil.rmtree(run / "audit", ignore_errors=True)
    shell("audit", "--run", run)
    with_truth = {name: (run / "seed-1" / "audit" / name).read_bytes() for name in SCORES}
    for seed in (0, 1):
        shutil.rmtree(run / f"seed-{seed}" / "audit")
        shutil.rmtree(run / f"seed-{seed}" / "truth")
    assert shell("audit", "--run", run)[0] == 2
    assert {name: (run / "seed-1" / "audit" / name).read_bytes() for name in SCORES} == with_truth


def test_scores_that_were_changed_where_they_are_kept_are_computed_again(
    study: Path, tmp_path: Path, shell: Shell
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    run = copied(study, tmp_path)
    shell("audit", "--run", run)
    path = run / "seed-0" / "audit" / "antipodal.parquet"
    before, kept, table = (run / "audit" / "audit.json").read_bytes(), path.read_bytes(), pq.read_table(path)
    forged = [
        table.set_column(table.column_names.index(name), name, pa.array(np.zeros(len(table))))
        for name in ("score", "until 0")
    ]
    for changed in (*forged, table.drop_columns(["score"])):
        pq.write_table(changed, path)
        assert shell("audit", "--run", run)[0] == 0
        assert (run / "audit" / "audit.json").read_bytes() == before
        assert path.read_bytes() == kept


def test_a_table_of_an_earlier_audit_does_not_stay_beside_a_later_one(
    study: Path, tmp_path: Path, shell: Shell
) -> None:
    run = copied(study, tmp_path)
    shell("audit", "--run", run, "--attacks", "antipodal")
    assert (run / "audit" / "partial" / "certificates.csv").exists()
    shell("audit", "--run", run, "--attacks", "cosine")
    assert not list((run / "audit" / "partial").glob("certificates.*"))


SCORES = [
    f"{name}.parquet"
    for name in ("antipodal", "cosine", "distance", "inner_product", "likelihood_ratio", "shadow", "tracing")
]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(bytes(data))


def _edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(
        text.replace(before, after, 1) if "schema" in before else after.join(text.rsplit(before, 1))
    )


def _spoil_candidates(run: Path) -> None:
    from privkit import tensors

    path = run / "candidates" / "records.safetensors"
    named = {name: array.copy() for name, array in tensors.read(path).items()}
    named["vectors"][3, 5] = np.nan
    _rewrite(run, path, named)


def _repeat_a_member(run: Path) -> None:
    from privkit import tensors

    path = run / "candidates" / "records.safetensors"
    members = tensors.read(run / "truth" / "answers.safetensors")["members"].astype(bool)
    named = {name: array.copy() for name, array in tensors.read(path).items()}
    inside, outside = np.flatnonzero(members)[0], np.flatnonzero(~members)[0]
    for array in named.values():
        array[outside] = array[inside]
    _rewrite(run, path, named)


def _rewrite(run: Path, path: Path, named: dict[str, np.ndarray]) -> None:
    """Write a file as if the run itself had written it."""
    import hashlib

    from privkit import atomic, tensors

    tensors.write(path, named)
    document = atomic.read_json(run / "run.json")
    document["files"][path.relative_to(run).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    atomic.write_json(run / "run.json", document)


def test_the_truth_of_another_seed_is_refused(study: Path, tmp_path: Path, shell: Shell) -> None:
    run = copied(study, tmp_path)
    shutil.copy(run / "seed-1" / "truth" / "answers.safetensors", run / "seed-0" / "truth")
    code, _, err = shell("audit", "--run", run)
    assert code == 2
    assert "another run's" in err


def test_reused_noise_is_a_violation(tmp_path: Path, shell: Shell) -> None:
    code, out, _ = shell("audit", "--run", recorded(tmp_path / "mine", noise_factor=1.0, fresh=False))
    assert code == 3
    assert "the noise was not drawn anew" in " ".join(out.split())


def test_one_client_without_noise_is_a_violation(tmp_path: Path, shell: Shell) -> None:
    code, out, _ = shell("audit", "--run", recorded(tmp_path / "mine", noise_factor=1.0, quiet_client=1))
    assert code == 3
    assert "client 1" in out


def test_a_relation_that_canaries_cannot_test_is_not_ok(tmp_path: Path, shell: Shell) -> None:
    path = recorded(tmp_path / "mine", noise_factor=0.5, relation=Relation.ZERO_OUT)
    code, out, _ = shell("audit", "--run", path, "--fail-on", "inconclusive", "--json")
    assert code == 4
    assert "no neighbours under" in next(
        r["reason"] for r in json.loads(out)["attacks"] if r["attack"] == "antipodal"
    )
    reason = json.loads(out)["cells"][0]["reasons"]
    assert reason.startswith("canaries test a replacement and do not apply under 'zero out one record'")
    assert "would settle" not in reason


def test_a_ledger_that_the_anchor_hides_is_refused(study: Path, tmp_path: Path, shell: Shell) -> None:
    from privkit import atomic, ledger

    run = copied(study, tmp_path) / "seed-0"
    document = atomic.read_json(run / "run.json")
    document["progress"]["ledger"] = ledger.Anchor().to_dict()
    atomic.write_json(run / "run.json", document)
    code, _, err = shell("audit", "--run", run)
    assert code == 2
    assert "holds more than run.json anchors" in err


def recorded(
    path: Path,
    *,
    noise_factor: float,
    fresh: bool = True,
    quiet_client: int | None = None,
    relation: Relation = Relation.REPLACE_SAME_LABEL,
) -> Path:
    """A run of other people's training code: five lines of ours in it."""
    rng = np.random.default_rng(0)
    sigma, clip, rounds = 4.0, 1.0, 3
    contract = Contract(
        relation=relation,
        clip_norm=clip,
        encoder=DependsOn.PUBLIC,
        assignment=DependsOn.PUBLIC,
        counts=Counts.PUBLIC,
        hyperparameters=DependsOn.PUBLIC,
        fresh_noise=True,
    )
    data = [(rng.normal(size=(200, 32)), rng.integers(0, 4, 200)) for _ in range(2)]
    with privkit.Recorder(
        path, clients=2, rounds=rounds, num_classes=4, dim=32, canaries=1024, canary_norm=3.0
    ) as recorder:
        for t in range(rounds):
            for m, (records, classes) in enumerate(data):
                z, y = recorder.plant(m, records, classes)
                z = z / np.maximum(1.0, np.linalg.norm(z, axis=1, keepdims=True) / clip)
                labels, counts = np.unique(y, return_counts=True)
                means = np.array([z[y == c].mean(0) for c in labels])
                source = rng if fresh else np.random.default_rng(m)
                noise = source.normal(size=means.shape) * (sigma * 2 * clip / counts)[:, None]
                factor = 1e-3 if m == quiet_client else noise_factor
                payload = Prototypes(vectors=means + factor * noise, labels=labels, counts=counts)
                event = Gaussian(noise_multiplier=sigma, contract=contract)
                recorder.record(round=t, client=m, payload=payload, event=event)
    return path


def test_a_recorder_run_is_audited_the_same_way(tmp_path: Path, shell: Shell) -> None:
    code, out, _ = shell("audit", "--run", recorded(tmp_path / "mine", noise_factor=1.0), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["verdict"] == "OK"
    assert found["cells"][0]["epsilon"] > 0
    reason = found["attacks"][1]["reason"]
    assert "no records to ask about; name some with recorder.ask(...)" in reason


def test_a_recorder_run_with_half_its_noise_is_a_violation(tmp_path: Path, shell: Shell) -> None:
    assert shell("audit", "--run", recorded(tmp_path / "mine", noise_factor=0.5))[0] == 3


def test_a_ledger_that_costs_more_than_promised_is_a_violation(tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "mine"
    recorded(path, noise_factor=1.0)
    _edit(path / "run.json", '"promise": null', '"promise": {"delta": 1e-05, "epsilon": 0.1}')
    code, out, _ = shell("audit", "--run", path)
    assert code == 3
    assert "more than the 0.1 that was promised" in " ".join(out.split())


@pytest.mark.parametrize(("epsilon", "over"), [(1.0, True), (3.0, False)])
def test_a_ledger_that_costs_more_than_its_budget_is_a_violation(
    tmp_path: Path, shell: Shell, epsilon: float, over: bool
) -> None:
    path = recorded(tmp_path / "mine", noise_factor=1.0)
    budget = json.dumps({"adaptive": False, "delta": 1e-05, "epsilon": epsilon})
    _edit(path / "run.json", '"budget": null', f'"budget": {budget}')
    code, out, _ = shell("audit", "--run", path, "--json")
    assert code == (3 if over else 0)
    reason = json.loads(out)["cells"][0]["reasons"]
    spent = smallest(Repeated(event=Gaussian(noise_multiplier=4.0), count=3), delta=1e-5).epsilon
    sentence = f"client 0 has spent epsilon {spent:.6g}, more than the budget of epsilon 1 at delta 1e-05"
    assert reason.startswith(sentence) == over


def test_a_recorder_that_was_not_finished_is_not_told_to_train_again(tmp_path: Path, shell: Shell) -> None:
    privkit.Recorder(tmp_path / "mine", clients=1, rounds=3, num_classes=2, dim=2)
    code, _, err = shell("audit", "--run", tmp_path / "mine")
    assert code == 2
    assert "stopped after 0 of 3 rounds; record all of its rounds into a new folder" in err


def test_a_choice_of_attacks_is_never_ok_and_replaces_nothing(tmp_path: Path, shell: Shell) -> None:
    path = recorded(tmp_path / "mine", noise_factor=0.5)
    assert shell("audit", "--run", path)[0] == 3
    whole = (path / "audit" / "audit.md").read_bytes()
    _, out, _ = shell("audit", "--run", path, "--attacks", "cosine", "--json")
    assert json.loads(out)["verdict"] == "INCONCLUSIVE"
    assert (path / "audit" / "audit.md").read_bytes() == whole


@pytest.mark.parametrize("values", [("",), (",",), (" , ",), ("cosine", "")])
def test_an_empty_choice_of_attacks_is_not_every_attack(
    tmp_path: Path, shell: Shell, values: tuple[str, ...]
) -> None:
    path = recorded(tmp_path / "mine", noise_factor=1.0)
    code, out, err = shell(
        "audit", "--run", path, *(part for value in values for part in ("--attacks", value))
    )
    assert (code, out) == (2, "")
    said = (
        f"privkit: --attacks {values[-1]!r} names no attack; give names with commas between, or leave it out."
    )
    assert " ".join(err.split()) == said
    assert not (path / "audit").exists()


@pytest.mark.parametrize(
    ("canaries", "complaint"),
    [
        (
            {"count": 0, "norm": 3.0},
            "no canary was scored by attack antipodal, so a missing clip would go unseen",
        ),
        ({"count": 256, "norm": 0.5}, "lie within 2 times the clip norm 1"),
    ],
)
def test_without_a_canary_outside_the_ball_nothing_is_ok(
    tmp_path: Path, shell: Shell, canaries: object, complaint: str
) -> None:
    config = configured(tmp_path, canaries=canaries)
    shell("train", config, "--out", tmp_path / "run")
    code, out, _ = shell("audit", "--run", tmp_path / "run", "--fail-on", "inconclusive")
    assert code == 4
    assert complaint in " ".join(out.split())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "frozen encoder, trained head"),
        (
            {"method": "mpft", "model": {"adapter": 4}},
            "adapter of width 4 after the frozen backbone, trained head; releases from the frozen backbone",
        ),
        (
            {"method": {"name": "mpft", "embeddings": "adapted"}, "model": {"adapter": 4}},
            "adapter of width 4 after the frozen backbone, trained head",
        ),
        ({"method": "mpft"}, "frozen encoder, trained head"),
        (
            {
                "method": "mpft",
                "mixed": [{"encoder": "usps_cnn"}, {"encoder": "usps_cnn", "model": {"adapter": 4}}],
            },
            "2 architectures (usps_cnn: frozen encoder, trained head; usps_cnn: adapter of width 4 after the frozen "
            "backbone, trained head; releases from the frozen backbone)",
        ),
    ],
)
def test_the_model_says_whether_releases_see_what_is_trained(changes, said) -> None:
    assert of_model(RunConfig.from_settings({**BASE, **changes}, where="test").settings()) == said


def test_a_recorded_run_may_describe_its_model_as_it_likes() -> None:
    assert of_model({}) == "recorded by other code"
    assert of_model({"model": "two layers"}) == "two layers"
    assert of_model({"model": {"layers": 2}}) == "{'layers': 2}"
