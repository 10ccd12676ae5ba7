"""Runs that tune a transformer, from a configuration file through training and audit."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import Result
from scipy.stats import norm
from typer.testing import CliRunner

from accountant.contract import Contract, Relation
from accountant.events import Event, Gaussian, NonPrivate, Repeated, SubsampledGaussian
from attacks._base import AbstractAttack
from attacks.gradient._plan import sigma_for
from privkit.audit._tuned import batch_ceiling
from privkit.audit.choice import configured, every_attack
from privkit.audit.run import audit
from privkit.cli.calibrate import app as calibrate
from privkit.cli.train import train
from privkit.errors import InputError
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.loop import train as train_one
from privkit.finetune.view import owned
from privkit.release import Release, Update
from privkit.store import Run
from privkit.study import load, load_as, tunes
from privkit.transcript import Transcript
from reports import audit_files
from reports.defense_cells import FAMILIES
from reports.defense_sentences import of_audit
from reports.defense_table import defenses
from reports.figures import privacy_utility
from reports.findings import Findings
from tests.finetuned import TINY, config

CELLS = {
    "none": {"defense": "none"},
    "fisguard": {"defense": {"name": "fisguard", "rank": 2}},
    "dpsgd": {"defense": {"name": "dpsgd", "noise_multiplier": 2.0}, "sampling": "poisson"},
}
ON_GRADIENTS = {a.name for a in every_attack() if isinstance(a, AbstractAttack) and a.reads == "gradients"}


def written(path: Path, **changes: object) -> Path:
    path.write_text(yaml.safe_dump({**TINY, "rounds": 2, **changes}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tuned")
    file = written(folder / "tuned.yaml", cells=CELLS)
    train(
        [file],
        out=folder / "runs",
        data=None,
        cells=[],
        seeds=None,
        device="cpu",
        dtype=None,
        skip_bad=False,
        threads=1,
    )
    return folder / "runs"


@pytest.fixture(scope="module")
def audited(trained: Path) -> Findings:
    return audit(trained)


def test_a_file_with_a_tuning_is_about_the_gradient_lab(tmp_path):
    file = written(tmp_path / "tuned.yaml", cells=CELLS)
    assert tunes(file)
    study = load_as(FinetuneConfig, file)
    assert sorted(study.cells) == sorted(CELLS)
    with pytest.raises(InputError, match="unknown key"):
        load(file)


def test_an_audit_asks_attacks_on_gradients_and_no_others(audited):
    assert not audited.failed
    assert [cell.name for cell in audited.cells] == sorted(CELLS)
    for cell in audited.cells:
        assert {taken.attack for taken in cell.taken} == ON_GRADIENTS
        assert "random_bert" in cell.model


@pytest.mark.parametrize(
    ("backbone", "tuning"),
    [
        ("random_bert", {"name": "lora", "rank": 3}),
        ("random_gpt2", {"name": "adapter", "width": 8}),
        ("random_gpt2", {"name": "lora", "rank": 3}),
    ],
)
def test_every_attack_runs_on_encoders_and_decoders_with_adapters_and_low_rank_maps(
    backbone, tuning, tmp_path
):
    made = config(
        backbone={"name": backbone, "size": "tiny", "max_length": 24},
        tuning=tuning,
        rounds=2,
        questions={"clients": 2, "rounds": [0, 1]},
    )
    findings = audit(train_one(made, tmp_path / "run", device="cpu").path)
    assert not findings.failed
    (cell,) = findings.cells
    assert {taken.attack for taken in cell.taken if not taken.reason} == ON_GRADIENTS
    best = {t.attack: t.auc.value for t in cell.taken if t.auc is not None and t.auc.value is not None}
    assert best["matched_filter"] > 0.9
    assert best["joint_decoding"] > 0.9


def test_a_record_in_a_batch_is_held_against_the_ceiling_of_that_batch(audited):
    """Amplification keeps secret who is in a batch, and that is what is asked."""
    (cell,) = [cell for cell in audited.cells if cell.name == "dpsgd"]
    ceilings = [taken.auc_ceiling for taken in cell.taken if not taken.reason]
    assert len(ceilings) > 5
    assert ceilings == pytest.approx([norm.cdf(1 / (2.0 * 2**0.5))] * len(ceilings))


def test_what_was_expected_stands_beside_what_was_measured(trained, audited):
    for cell in audited.cells:
        told = {t.attack: t for t in cell.taken if t.predicted is not None}
        assert set(told) == {"matched_filter", "head_only"}
        for found in told.values():
            assert found.predicted_by_round == (
                None,
                found.predicted,
            )  # the last of two rounds is asked about
    (noisy,) = [cell for cell in audited.cells if cell.name == "dpsgd"]
    (filtered,) = [t for t in noisy.taken if t.attack == "matched_filter"]
    assert filtered.predicted is not None
    assert filtered.auc_ceiling is not None
    assert 0.5 < filtered.predicted < filtered.auc_ceiling
    assert f"predicted {filtered.predicted:.3f}, measured" in audit_files.markdown(audited)
    assert audit(trained) == audited  # kept with the scores


def test_two_estimators_have_a_row_and_a_file_each(trained, tmp_path):
    file = tmp_path / "attacks.yaml"
    file.write_text(
        "attacks: [matched_filter, {name: matched_filter, estimator: kronecker}]", encoding="utf-8"
    )
    both = [attack for attack in configured(file) if attack.name == "matched_filter"]
    copy = tmp_path / "runs"
    shutil.copytree(trained / "fisguard", copy)
    (cell,) = audit(copy, attacks=both).cells
    assert [t.attack for t in cell.taken] == ["matched_filter", "matched_filter (kronecker)"]
    kept = {path.name for path in (copy / "seed-0" / "audit").iterdir()}
    assert {"matched_filter.parquet", "matched_filter-kronecker.parquet"} <= kept
    assert cell.taken[0].auc != cell.taken[1].auc


def test_every_cell_is_a_row_of_the_table_of_defenses_and_every_protected_one_has_a_sentence(audited):
    table, cells = defenses([("tuned", audited)])
    assert [(row["defense"], row["strength"]) for row in table.rows] == [
        ("none", None),
        ("dpsgd", 2.0),
        ("fisguard", 2.0),
    ]
    for row in table.rows:
        assert row["projection_attack"] == "projres"
        assert [row[f"{family}_tried"] for family in FAMILIES] == [1, 7, 5]
        assert row["accuracy"] is not None
        assert row["bytes_per_round"] > 0
    assert table.rows[1]["ceiling"] == pytest.approx(norm.cdf(1 / (2.0 * 2**0.5)))
    first, second = of_audit(audited)
    assert first.startswith("dpsgd (noise multiplier 2) ")
    assert second.startswith("fisguard (rank 2) ")
    drawn = privacy_utility.draw(cells)
    assert drawn is not None
    assert len(drawn.axes) == 3


def test_noise_for_an_auc_is_measured_on_the_records_of_the_server_of_one_run(trained):
    def shell(folder: Path, *words: str) -> Result:
        return CliRunner().invoke(calibrate, ["dpsgd", "--target-auc", "0.7", "--run", str(folder), *words])

    found = json.loads(shell(trained / "none", "--clip-norm", "0.5", "--json").stdout)
    ((round, passes),) = owned(Run(trained / "none" / "seed-0"))
    sigma, told = sigma_for(passes, auc=0.7, batch_size=4, clip_norm=0.5)
    assert (found["rounds"], found["batch"]) == ([round], 4)
    assert (found["sigma"], found["predicted_auc"]) == (sigma, told.auc)
    assert 0.698 < told.auc <= 0.7 < found["auc_ceiling"]
    assert "holds 3 runs; give one of them, such as" in str(shell(trained).exception)
    assert "clip_norm=0.0 must be finite and above 0" in str(
        shell(trained / "none", "--clip-norm", "0").exception
    )


def test_scores_do_not_depend_on_the_truth(trained, tmp_path):
    copy = tmp_path / "runs"
    shutil.copytree(trained, copy)
    audit(copy)
    before = {p.relative_to(copy): p.read_bytes() for p in copy.rglob("audit/*.parquet")}
    for path in before:
        (copy / path).unlink()
    for truth in copy.rglob("truth"):
        shutil.rmtree(truth)
    with pytest.raises(InputError, match="truth"):
        audit(copy)
    after = {p.relative_to(copy): p.read_bytes() for p in copy.rglob("audit/*.parquet")}
    assert before
    assert after == before


def test_changed_settings_are_refused_before_anything_is_trained(trained, tmp_path):
    copy = tmp_path / "runs"
    shutil.copytree(trained, copy)
    file = written(tmp_path / "tuned.yaml", cells=CELLS, batch=5)
    with pytest.raises(InputError, match="was created with another config"):
        train(
            [file],
            out=copy,
            data=None,
            cells=[],
            seeds=None,
            device="cpu",
            dtype=None,
            skip_bad=False,
            threads=1,
        )
    assert all(run.complete for run in (Run(p.parent) for p in copy.rglob("run.json")))


def transcript(*events: Event) -> Transcript:
    payload = Update(named={"w": np.ones((1, 1), np.float32)}, means="gradient")
    return Transcript.of(
        Release(round=0, client=c, payload=payload, event=event) for c, event in enumerate(events)
    )


def test_the_ceiling_of_a_batch_is_that_of_its_noisiest_steps_without_sampling():
    contract = Contract(relation=Relation.ADD_REMOVE, clip_norm=1.0)
    sampled = SubsampledGaussian(noise_multiplier=2.0, sampling_rate=0.01, contract=contract)
    plain = Gaussian(noise_multiplier=4.0, contract=contract)
    several = Repeated(event=Gaussian(noise_multiplier=4.0, contract=contract), count=9)
    for events, mu in [((sampled, plain), 0.5), ((plain,), 0.25), ((several, sampled), 0.75)]:
        limit = batch_ceiling([transcript(*events)])
        assert limit is not None
        assert limit.auc == pytest.approx(norm.cdf(mu / 2**0.5))
    assert batch_ceiling([transcript(sampled, NonPrivate(contract=Contract()))]) is None
    assert batch_ceiling([]) is None
