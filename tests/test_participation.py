"""Clients that are absent: they send nothing, cost nothing, train nothing, and keep what they have."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from accountant.claims import claim
from accountant.events import Gaussian, leaves
from privkit import plug
from privkit.audit.run import audit
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod, Sends
from privkit.spend import holders
from privkit.store import Run
from privkit.study import Study, load, merged, plans
from privkit.train import study as studies
from privkit.train.attendance import Attendance
from privkit.train.encoded import encode
from privkit.train.loop import train
from tests.test_contract_methods import train_with_kills, tree

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "model": {"adapter": 3},
    "method": {"name": "fedproto", "training": {"batch_size": 12, "learning_rate": 0.01}},
    "defense": {"name": "igpp", "epsilon": 8.0},
    "canaries": {"count": 4, "norm": 3.0},
    "participation": 0.5,
    "rounds": 5,
}
METHODS = [name for name, _ in plug.every("privkit.methods")]


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def study(folder: Path, **changes: Any) -> Study:
    folder.mkdir(exist_ok=True)
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(merged(SETTINGS, changes), sort_keys=False))
    return load(path)


def of_method(name: str) -> dict[str, Any]:
    """Return a configuration of a method, with what it takes."""
    found = plug.build("privkit.methods", name)
    assert isinstance(found, AbstractMethod)
    settings: dict[str, Any] = {
        "name": name,
        **SETTINGS["method"],
        **({"particles": 2} if name == "fedwba" else {}),
    }
    settings["name"] = name
    if found.sends is Sends.PROTOTYPES:
        settings["prototypes"] = "mean"
        return {"method": settings}
    defense = {"name": "dphead", "epsilon": 8.0} if found.sends is Sends.WEIGHTS else {"name": "none"}
    return {"method": settings, "defense": defense}


def attendance(config: Study, *, clients: int = 4) -> Attendance:
    (plan,) = plans(config)
    return Attendance.of(plan, clients=clients)


# ---------------------------------------------------------------------- who is there


@given(
    st.integers(1, 40),
    st.one_of(st.floats(0.01, 0.99), st.integers(1, 40)),
    st.integers(0, 5),
    st.integers(0, 9),
    st.booleans(),
)
def test_so_many_clients_are_there_in_every_round_and_seed_and_round_alone_say_who(
    clients, wanted, seed, round, later
):
    present = min(clients, wanted) if isinstance(wanted, int) else max(1, int(wanted * clients + 0.5))
    who = Attendance(clients=clients, present=present, seed=seed, later=later)
    found = who.trainers(round)
    assert len(found) == present
    assert (np.diff(found) > 0).all()
    assert set(found) <= set(range(clients))
    assert np.array_equal(
        found, Attendance(clients=clients, present=present, seed=seed, later=not later).trainers(round)
    )
    assert np.array_equal(who.senders(round + 1), who.trainers(round if later else round + 1))
    assert np.array_equal(who.senders(0), who.trainers(0))
    counted = [sum(m in who.trainers(t) for t in range(round)) for m in range(clients)]
    assert [who.trained(m, round) for m in range(clients)] == counted


def test_every_client_is_as_likely_as_any_other():
    who = Attendance(clients=5, present=2, seed=0, later=False)
    times = np.bincount(np.concatenate([who.trainers(t) for t in range(2000)]), minlength=5)
    assert (np.abs(times - 800) < 4 * np.sqrt(2000 * 0.4 * 0.6)).all()


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (5, "participation=5, and there are 4 clients; give at most as many"),
        (0, "participation"),
        (0.0, "participation"),
        (1.5, "participation"),
        (-0.5, "participation"),
        (float("nan"), "participation"),
        (True, "participation"),
        ("half", "participation"),
    ],
)
def test_a_number_that_is_none_is_refused_before_anything_is_written(wanted, words, tmp_path):
    with pytest.raises(InputError, match=words):
        train(study(tmp_path, participation=wanted), tmp_path / "runs", device="cpu")
    assert not (tmp_path / "runs").exists()


def test_a_number_or_a_share_of_clients(tmp_path):
    for wanted, present in ((1, 1), (0.01, 1), (0.5, 2), (0.99, 4), (4, 4)):
        assert attendance(study(tmp_path, participation=wanted)).present == present
    plain = {k: v for k, v in SETTINGS.items() if k != "participation"}
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump(plain))
    (plan,) = plans(load(path))
    assert Attendance.of(plan, clients=4).present == 4
    assert "participation" not in plan.config.settings()  # older runs are still read and resumed


# ---------------------------------------------------------------------- every method


@pytest.mark.parametrize("name", METHODS)
def test_every_method_goes_on_when_half_of_the_clients_are_absent(name, tmp_path):
    config = study(tmp_path, **of_method(name))
    who = attendance(config)
    train(config, tmp_path / "runs", device="cpu")
    run = Run(tmp_path / "runs")
    if who.later or config.cells["run"].method.uploads:
        sent = {t: [r.client for r in run.transcript().releases if r.round == t] for t in range(5)}
        assert sent == {t: who.senders(t).tolist() for t in range(5)}
    before, after = run.state(4), run.state(5)
    trained = set(who.trainers(4).tolist())
    own = [
        n for n in after if n.startswith(("params.", "rule.", "received.", "first.", "1-first.", "steps."))
    ]
    for client in range(4):
        same = [np.array_equal(before[n][client], after[n][client]) for n in own]
        assert all(same) is (client not in trained), client
    rows = pq.read_table(tmp_path / "runs" / "metrics.parquet").to_pylist()
    assert sorted((row["round"], row["client"]) for row in rows) == [
        (t, m) for t in range(5) for m in range(4)
    ]
    audit(tmp_path / "runs")


@pytest.mark.parametrize("name", METHODS)
def test_a_run_that_was_killed_ends_with_the_same_bytes(name, tmp_path):
    cells = {"one": {}, "other": {"participation": 3}}
    config = study(tmp_path, **of_method(name), cells=cells, rounds=4, seeds=2)
    train(config, tmp_path / "whole", device="cpu")
    assert train_with_kills(config, tmp_path / "killed") >= 2
    assert tree(tmp_path / "whole") == tree(tmp_path / "killed")


@pytest.mark.parametrize("name", ["fedproto", "fedavg", "ditto"])
def test_all_clients_by_number_are_all_clients_by_default(name, tmp_path):
    uploads = []
    for wanted in (4, None):
        changes = {**of_method(name), "participation": wanted}
        folder = tmp_path / str(wanted)
        train(study(folder, **changes), folder / "runs", device="cpu")
        uploads.append([r.payload.digest() for r in Run(folder / "runs").transcript().releases])
    assert uploads[0] == uploads[1]


# ---------------------------------------------------------------------- what is spent


def test_only_what_was_sent_is_spent(tmp_path):
    config = study(tmp_path)
    who = attendance(config)
    train(config, tmp_path / "runs", device="cpu")
    transcript = Run(tmp_path / "runs").transcript()
    for m, holder in enumerate(holders([tmp_path / "runs"])):
        times = sum(m in who.senders(t) for t in range(5))
        found = [leaf for event in holder.by_round for leaf, _ in leaves(event)]
        assert len(found) == times
        if times:
            (sigma,) = {leaf.noise_multiplier for leaf in found if isinstance(leaf, Gaussian)}
            wanted = claim(Gaussian(noise_multiplier=sigma / np.sqrt(times)), delta=1e-5).epsilon
            assert claim(transcript.cost(m), delta=1e-5).epsilon == pytest.approx(wanted, rel=1e-9)
            assert wanted <= 8.0


def test_a_budget_counts_the_rounds_in_which_a_client_sends(tmp_path):
    """Noise for epsilon 8 over 5 rounds: a client that comes three times spends less than one that always comes."""
    config = study(tmp_path, budget={"epsilon": 7.0, "on_exhausted": "refuse"})
    most = max(sum(m in attendance(config).senders(t) for t in range(5)) for m in range(4))
    assert most < 5
    train(config, tmp_path / "runs", device="cpu")
    assert not Run(tmp_path / "runs").ended


# ---------------------------------------------------------------------- what is asked


def test_nothing_is_asked_about_a_client_that_never_sends_and_that_is_said(tmp_path):
    config, said = study(tmp_path, participation=1, rounds=2), []
    (plan,) = plans(config)
    data = encode(plan.config)
    asked = studies.asked_about(plan, data)
    assert 1 <= asked.sum() <= 2
    train(config, tmp_path / "runs", device="cpu", notice=said.append)
    run = Run(tmp_path / "runs")
    silent = [name for name, sends in zip(run.info.clients, asked, strict=True) if not sends]
    (sentence,) = [s for s in said if "nothing is asked about" in s]
    assert all(name in sentence for name in silent)
    assert "which send in none of 2 rounds" in sentence
    for kind in ("records", "canaries"):
        found = run.records(kind)
        assert found is not None
        assert set(np.unique(found.clients)) == set(np.flatnonzero(asked))
    reference = run.records("reference")
    assert reference is not None
    assert set(np.unique(reference.clients)) == {0, 1, 2, 3}
    (cell,) = audit(tmp_path / "runs").cells
    assert any(found.auc is not None for found in cell.taken)
