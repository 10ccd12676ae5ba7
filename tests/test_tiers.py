"""Tiers above the server's: the client's own encoder, and its personalised model; what they see, and what is said."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from attacks._base import NotApplicableError
from attacks.membership.cosine import Cosine
from attacks.model.loss import Loss
from privkit.audit._beyond import seen_by
from privkit.audit.choice import configured
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.errors import InputError
from privkit.release import Prototypes
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train
from privkit.transcript import InsiderView, ServerView
from reports import audit_table
from reports.findings import CellFindings

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 16},
    "encoder": {"name": "usps_cnn"},
    "model": {"adapter": 4},
    "method": {"name": "fedproto", "training": {"batch_size": 12, "learning_rate": 0.02, "epochs": 4}},
    "defense": {"name": "none"},
    "rounds": 3,
}
ASKED = """attacks:
  - cosine
  - {name: cosine, tier: client}
  - {name: shadow, tier: client}
  - {name: loss, tier: insider}
  - {name: lira_online, tier: insider}
"""
ABOVE = ("cosine (client)", "shadow (client)", "loss (insider)", "lira_online (insider)")


def trained(folder: Path, **changes: Any) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **changes}, sort_keys=False))
    (run,) = train(load(path), folder / "run", device="cpu")
    return run


def attacked(run: Path) -> CellFindings:
    file = run.parent / "attacks.yaml"
    file.write_text(ASKED, encoding="utf-8")
    chosen = [a for a in configured(file) if a.name in ("cosine", "shadow", "loss", "lira_online", "rmia")]
    (cell,) = audit(run, attacks=chosen).cells
    return cell


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("tiers"))


@pytest.fixture(scope="module")
def cell(run: Path) -> CellFindings:
    return attacked(run)


def test_tier_client_embeds_as_the_clients_did_when_they_released(run):
    view, truth = RunView.of(Run(run)), Run(run).truth()
    records = view.questions["records"]
    assert records is not None
    seen, embedded = seen_by("client", view, records)
    assert {r.round for r in seen.releases} == {2}
    assert not np.allclose(embedded.vectors, records.vectors, atol=1e-2)
    for release in seen.releases:
        assert isinstance(release.payload, Prototypes)
        for vector, label in zip(release.payload.vectors, release.payload.labels, strict=True):
            own = truth.members & (records.clients == release.client) & (records.labels == label)
            np.testing.assert_allclose(embedded.vectors[own].mean(0), vector, atol=1e-4)
    assert seen.reference is not None
    assert view.reference is not None
    assert len(seen.reference) == len(view.reference)


def test_an_insider_has_the_models_that_training_ended_with(run):
    view = RunView.of(Run(run))
    records = view.questions["records"]
    assert records is not None
    seen, asked = seen_by("insider", view, records)
    assert asked is records
    assert seen.releases == view.transcript.releases
    state = Run(run).state(3)
    assert isinstance(seen, InsiderView)
    for client, held in seen.personal.items():
        assert set(held.named) == {"head.weight", "head.bias", "adapter.down", "adapter.up"}
        for name, array in held.named.items():
            assert np.array_equal(array, state[f"params.{name}"][client])
    alone = seen.only(1)
    assert isinstance(alone, InsiderView)
    assert alone.personal is seen.personal


def test_a_server_has_neither(run):
    view = RunView.of(Run(run))
    records = view.questions["records"]
    assert records is not None
    for tier in ("public", "shadow", "design"):
        seen, asked = seen_by(tier, view, records)
        assert type(seen) is ServerView
        assert asked is records


def test_every_row_names_its_tier_and_those_above_the_server_have_no_ceiling(cell):
    rows = {found.attack: found for found in cell.taken}
    assert [name for name in rows if name not in ABOVE] == ["cosine"]
    for name in ABOVE:
        assert rows[name].tier == name.split("(")[1].removesuffix(")")
        assert rows[name].auc is not None
        assert rows[name].auc_ceiling is None
        assert rows[name].adjusted_p is None
        assert any("outside the claimed guarantee" in known for known in rows[name].knows)
    assert rows["cosine"].tier == "public"
    assert "tier" in {column.key for column in audit_table.ATTACKS}


def test_attacks_on_weights_that_nobody_sent_are_not_listed(cell):
    assert "rmia" not in {found.attack for found in cell.taken}


def test_scores_are_kept_apart_and_need_no_truth(run, cell, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(run, other)
    shutil.rmtree(other / "audit")
    shutil.rmtree(other / "truth")
    with pytest.raises(InputError):
        attacked(other)
    for name in ("cosine-client", "shadow-client", "loss-insider", "lira_online-insider"):
        with_truth, without = (
            pq.read_table(folder / "audit" / f"{name}.parquet").column("score").to_numpy()
            for folder in (run, other)
        )
        assert np.array_equal(with_truth, without)


def test_a_model_that_changed_is_scored_again(run, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(run, other)
    attack = Loss(tier="insider")
    before = RunView.of(Run(other)).score(attack).whole
    shutil.copy(run / "state" / "round-000002.safetensors", other / "state" / "round-000003.safetensors")
    assert not np.array_equal(RunView.of(Run(other)).score(attack).whole, before)


# ---------------------------------------------------------------------- what there may not be


def reasons(run: Path) -> dict[str, str]:
    return {found.attack: found.reason for found in attacked(run).taken if found.reason}


def test_a_run_without_state_says_what_is_missing(run, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(run, other)
    shutil.rmtree(other / "state")
    found = reasons(other)
    assert set(found) == set(ABOVE)
    assert all("does not keep what its clients' models were after" in reason for reason in found.values())


def test_under_a_frozen_encoder_the_tiers_are_one_and_the_ceiling_is_the_servers_alone(tmp_path):
    frozen = trained(
        tmp_path,
        model={"adapter": None},
        defense={"name": "igpp", "epsilon": 8.0},
        canaries={"count": 8},
        rounds=2,
    )
    cell = attacked(frozen)
    rows = {found.attack: found for found in cell.taken}
    assert "which is public: tier client has no more than a server" in rows["cosine (client)"].reason
    assert rows["cosine"].auc_ceiling is not None
    assert rows["loss (insider)"].auc is not None
    assert rows["loss (insider)"].auc_ceiling is None
    assert rows["loss (insider)"].adjusted_p is None


def test_one_release_was_made_with_the_encoder_that_was_broadcast(tmp_path):
    found = reasons(trained(tmp_path, rounds=1))
    assert "the only release was made with the encoder that was broadcast" in found["cosine (client)"]


def test_a_mixed_federation_is_not_read_as_one_architecture(tmp_path):
    mixed = [{"encoder": {"name": "usps_cnn"}, "model": {"adapter": r}} for r in (4, 6)]
    run = trained(tmp_path, mixed=mixed)
    found = reasons(run)
    assert set(found) == set(ABOVE)
    assert all("mixes architectures" in reason for reason in found.values())


def test_equal_scores_for_all_are_no_finding(run, monkeypatch):
    attack = Cosine()
    monkeypatch.setattr(Cosine, "score", lambda self, view, asked: np.zeros(len(asked)))
    monkeypatch.setattr("privkit.audit.scored._read", lambda path, key: None)
    with pytest.raises(
        NotApplicableError, match="every candidate has the score 0: it tells none from another"
    ):
        RunView.of(Run(run)).score(attack)
