"""Steps of heads in real runs: what training did is what the server sees, and an audit asks attacks about it."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from sklearn.metrics import roc_auc_score

from attacks._base import AbstractAttack, NotApplicableError
from attacks._passes import passes
from attacks.gradient._base import GradientAttack
from privkit import plug
from privkit.audit.choice import configured
from privkit.audit.heads import Steps, steps
from privkit.audit.run import audit
from privkit.audit.scored import RunView
from privkit.audit.setup import config_of, setup_of
from privkit.cayley import cayley
from privkit.exposure import ClientRecords
from privkit.release import Update
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train
from reports.findings import CellFindings

ROTATION = {"transform": {"name": "rotation", "blocks": 4}, "temperature": 10.0, "first_head": "records"}
ONE_STEP = {"epochs": 1, "batch_size": 4096, "optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0}
SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "domains": ["mnist", "syn", "optdigits"], "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "model": ROTATION,
    "method": {"name": "fedot", "training": ONE_STEP},
    "defense": {"name": "none"},
    "split": {"pool": 0.2, "reference": 0.5, "test": 0.3},
    "rounds": 4,
}
ASKED = """attacks:
  - {name: projres, personal_map: identity}
  - {name: projres, personal_map: estimated}
  - {name: projres, personal_map: own}
  - {name: loss, tier: insider}
"""
SAID = "the client's rotation in 4 blocks is not sent; scored as if it were the identity"


def trained(folder: Path, **changes: Any) -> Run:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump({**SETTINGS, **changes}, sort_keys=False))
    (run,) = train(load(path), folder / "run", device="cpu")
    return Run(run)


def chosen(folder: Path) -> list[AbstractAttack]:
    file = folder / "attacks.yaml"
    file.write_text(ASKED, encoding="utf-8")
    names = ("projres", "loss", "matched_filter", "loss_trend", "score_difference", "joint_decoding")
    return [a for a in configured(file) if isinstance(a, AbstractAttack) and a.name in names]


def attacked(run: Run, folder: Path) -> CellFindings:
    (cell,) = audit(run.path, attacks=chosen(folder)).cells
    return cell


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return trained(tmp_path_factory.mktemp("steps"))


@pytest.fixture(scope="module")
def cell(run: Run, tmp_path_factory: pytest.TempPathFactory) -> CellFindings:
    return attacked(run, tmp_path_factory.mktemp("asked"))


def steps_of(run: Run) -> Steps:
    found = RunView.of(run)._steps
    assert found is not None
    return found


# ---------------------------------------------------------------------- what a step is


@pytest.mark.parametrize(
    "model",
    [{"temperature": 10.0}, {}, {"hidden": [8]}],
    ids=["temperature", "plain", "layers"],
)
@pytest.mark.parametrize("method", ["fedot", "fedavg_head"])
def test_one_step_of_a_head_alone_is_minus_the_mean_gradient_of_its_members(tmp_path, model, method):
    """The truth, training and the trace agree: the oracle is what the optimiser really did."""
    run = trained(tmp_path, model=model, method={"name": method, "training": ONE_STEP}, rounds=3)
    members, seen = run.truth().members, steps_of(run)
    for _, view in seen.by_round():
        (passed,) = view.asked.values()
        for release in view.releases:
            assert isinstance(release.payload, Update)
            own = members & (seen.candidates.clients == release.client)
            for name, trace in passed.traces.items():
                wanted = -0.1 * trace.gradients()[own].mean(0, dtype=np.float64)
                np.testing.assert_allclose(release.payload.named[name], wanted, atol=2e-6)


def test_behind_the_true_map_of_that_moment_it_is_so_for_a_rotation_too(tmp_path):
    """A run keeps its last two states, so that of three rounds has the map that its last step but one began from."""
    run = trained(tmp_path, rounds=2)
    seen, members = steps_of(run), run.truth().members
    (step,) = steps(seen.view, seen.config, seen.info)
    state = run.state(1)
    found = dict(seen.by_round("own"))[1]
    for client in range(3):
        own = members & (seen.candidates.clients == client)
        after = Update(named={"transform.x": state["params.transform.x"][client]}, means="weights")
        assert not np.array_equal(after.named["transform.x"], np.zeros_like(after.named["transform.x"]))
        plain = passes(seen._models(step)[client], seen.candidates.vectors[own], seen.candidates.labels[own])
        wanted = -0.1 * plain.traces["head.vectors"].gradients().mean(
            0
        )  # the first step begins at the identity
        sent = next(r.payload for r in found.releases if r.client == client)
        assert isinstance(sent, Update)
        np.testing.assert_allclose(sent.named["head.vectors"], wanted, atol=2e-6)
        q_rbb = cayley(torch.from_numpy(after.named["transform.x"].copy()).double())
        u = plain.traces["head.vectors"].inputs[:, 0].astype(np.float64)
        turned = torch.einsum("rbc,nrc->nrb", q_rbb, torch.from_numpy(u).unflatten(1, (4, -1))).flatten(1)
        inputs = found.asked[1].traces["head.vectors"].inputs[own][:, 0]
        np.testing.assert_allclose(inputs, turned.numpy(), atol=1e-5)


def test_a_head_that_the_client_keeps_is_compared_with_its_own_last_message(tmp_path):
    """What a method does with an answer is done again: where nothing is received, the head goes on as it was sent."""
    run = trained(tmp_path, rounds=3)
    seen = steps_of(run)
    keeping = type("Keeping", (type(seen.config.method),), {"receive": lambda self, params, down: None})
    method = keeping.model_construct(**dict(seen.config.method))
    config = seen.config.model_copy(update={"method": method})
    sent = {(r.round, r.client): r.payload for r in seen.view.releases}
    for step in steps(seen.view, config, seen.info):
        for client, began in step.began.items():
            before = sent[step.round - 1, client]
            assert isinstance(before, Update)
            assert np.array_equal(began.named["head.vectors"], before.named["head.vectors"])


def test_a_map_that_all_share_is_known_to_the_server(tmp_path):
    run = trained(tmp_path, method={"name": "fedot", "maps": "averaged", "training": ONE_STEP}, rounds=3)
    seen = steps_of(run)
    first, second = (view.asked[t].traces["head.vectors"].inputs for t, view in seen.by_round())
    assert not np.allclose(first, second, atol=1e-4)
    with pytest.raises(NotApplicableError, match="clients keep no map between embedding and head"):
        list(seen.by_round("own"))


def test_settings_of_the_model_are_public_and_nothing_else_is(run):
    setup = setup_of(run)
    assert (setup.temperature, setup.before, setup.blocks) == (10.0, "rotation in 4 blocks", 4)
    config = config_of(run)
    assert config is not None
    assert config.rounds == 4


# ---------------------------------------------------------------------- an audit


def test_attacks_on_weights_and_on_steps_stand_side_by_side(cell):
    rows = {found.attack: found for found in cell.taken}
    assert {
        "loss (insider)",
        "projres",
        "projres (estimated map)",
        "projres (insider)",
        "matched_filter",
    } <= set(rows)
    for name in ("projres", "joint_decoding", "matched_filter", "loss_trend", "score_difference"):
        found = rows[name]
        assert not found.reason
        assert found.auc is not None
        assert found.auc.low is not None
        assert found.auc_ceiling is None  # nothing was promised
        assert SAID in found.knows
    assert SAID not in rows["projres (insider)"].knows
    assert rows["projres (insider)"].tier == "insider"
    assert rows["projres"].auc is not None
    assert rows["projres"].auc.value is not None
    assert rows["projres"].auc.value > 0.9
    assert len(rows["projres"].by_round) == 4
    assert rows["projres"].by_round[0] is None  # the head that all begin with
    assert rows["projres (insider)"].by_round[:3] == (None, None, None)  # a run keeps the last maps only


def test_attacks_on_a_head_at_a_temperature_have_numbers_now(run, tmp_path):
    attack = plug.build("attacks.model", "loss")
    assert isinstance(attack, AbstractAttack)
    (found,) = audit(run.path, attacks=[attack]).cells[0].taken
    assert found.auc is not None
    assert SAID in found.knows


def test_scores_need_no_truth(run, cell, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(run.path, other)
    shutil.rmtree(other / "audit")
    shutil.rmtree(other / "truth")
    view = RunView.of(Run(other))
    several = chosen(tmp_path)
    view.prepare(several, lambda stage, done, total: None)
    for attack in several:
        found = view.score(attack)
        kept = pq.read_table(view._kept(attack)).column("score").to_numpy()
        again = pq.read_table(run.path / "audit" / view._kept(attack).name).column("score").to_numpy()
        assert np.array_equal(found.whole, kept)
        assert np.array_equal(kept, again)


def test_a_map_that_changed_is_scored_again_by_the_insider_alone(run, cell, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(run.path, other)
    before = {a.label: RunView.of(Run(other)).score(a).whole for a in chosen(tmp_path)}
    from privkit import tensors

    for path in (other / "state").glob("*.safetensors"):
        state = tensors.read(path)
        state["params.transform.x"] = state["params.transform.x"] + np.float32(0.3) * np.tri(
            32, dtype=np.float32
        )
        tensors.write(path, state, durable=False)
    for attack in chosen(tmp_path):
        same = np.array_equal(RunView.of(Run(other)).score(attack).whole, before[attack.label])
        assert same == (attack.assumed.tier != "insider"), attack.label


def test_records_that_nobody_trained_on_look_alike(tmp_path):
    """The null: of records outside, one half against the other, by the order in which they are asked about."""
    areas = []
    run = trained(
        tmp_path,
        rounds=3,
        data={"name": "digits", "per_class": 60},
        split={"pool": 0.4, "reference": 0.3, "test": 0.3},
    )
    seen = steps_of(run)
    outside = seen.candidates.where(~run.truth().members)
    attack = plug.build("attacks.gradient", "projres")
    assert isinstance(attack, GradientAttack)
    for _, view in replace(seen, candidates=outside).by_round():
        scores = attack.score(view, outside)
        for client in range(3):
            own = np.flatnonzero(outside.clients == client)
            areas.append(roc_auc_score(np.arange(len(own)) < len(own) // 2, scores[own]))
    assert 0.3 < np.mean(areas) < 0.7


# ---------------------------------------------------------------------- what has no steps


@pytest.mark.parametrize(
    "changes",
    [
        {"rounds": 1},
        {"method": {"name": "fedproto"}, "model": {}},
        {"method": {"name": "fedclip", "training": ONE_STEP}, "model": {**ROTATION, "transform": "gate"}},
    ],
    ids=["one round", "prototypes", "the head is fixed"],
)
def test_a_run_whose_heads_no_server_sees_train_has_none(tmp_path, changes):
    view = RunView.of(trained(tmp_path, **changes))
    assert view._steps is None
    assert "gradients" not in view.reads


def test_without_a_map_there_is_none_to_estimate(tmp_path):
    run = trained(tmp_path, model={"temperature": 10.0}, rounds=3)
    for taken in ("estimated", "own"):
        attack = plug.build("attacks.gradient", {"name": "projres", "personal_map": taken})
        assert isinstance(attack, AbstractAttack)
        (found,) = audit(run.path, attacks=[attack]).cells[0].taken
        assert found.reason == "clients keep no map between embedding and head: there is none to know"


def test_who_owns_no_records_cannot_estimate_a_map(tmp_path):
    run = trained(
        tmp_path,
        model={**ROTATION, "first_head": "random"},
        split={"pool": 0.2, "reference": 0.0, "test": 0.3},
        rounds=3,
    )
    attack = plug.build("attacks.gradient", {"name": "projres", "personal_map": "estimated"})
    assert isinstance(attack, AbstractAttack)
    (found,) = audit(run.path, attacks=[attack]).cells[0].taken
    assert "owns no records to estimate a map by" in (found.reason or "")


def test_candidates_are_asked_whether_their_client_trains_on_them(run):
    asked = steps_of(run).candidates
    assert isinstance(asked, ClientRecords)
    assert len(asked) == len(run.truth().members)
