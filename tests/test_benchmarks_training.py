"""The benchmarks of training compare the same work: peers and engine agree where nothing is timed, and can disagree."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import overhead, pairs, release_pairs, scaling, training
from benchmarks.__main__ import SECTIONS
from benchmarks.federation import Engine, Federation, farthest
from benchmarks.training_peers import pfllib_evaluation, vpdr_release
from benchmarks.training_peers.module_loop import TidyServer
from benchmarks.training_peers.modules import Model, from_privkit, to_privkit
from benchmarks.training_peers.padded_vmap import Padded
from benchmarks.training_peers.pfllib_round import ProtoServer
from benchmarks.training_peers.vpdr_training import VpdrServer
from privkit import plug
from privkit.methods._base import LocalTraining
from privkit.methods.fedproto import FedProto
from privkit.methods.local_only import LocalOnly
from privkit.personal import PersonalModel

ROOT = Path(__file__).parent.parent
BATCHES = LocalTraining(epochs=2, batch_size=4, learning_rate=0.01)
AS_PFLLIB = LocalTraining(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.05, weight_decay=0.0)


def tiny(*sizes: int, hidden: tuple[int, ...] = (), num_classes: int = 3) -> Federation:
    """Clients of a few records in R^6; one with fewer records than classes lacks some."""
    model = PersonalModel(adapter=2, hidden=hidden)
    return Federation.of(sizes or (9, 5, 2), dim=6, num_classes=num_classes, model=model, tests=30)


def trained(*sides: Any, rounds: int = 3) -> tuple[Any, ...]:
    for _ in range(rounds):
        for side in sides:
            side.round()
    return sides


# ---------------------------------------------------------------------- peers and engine


def test_a_round_as_in_pfllib_gives_the_same_prototypes_and_parameters():
    given = tiny().double()
    method = FedProto(training=AS_PFLLIB, pull=1.0)
    ours, theirs = trained(Engine(given, method), ProtoServer(given, AS_PFLLIB, 1.0))
    held = ours.state["holders"] > 0
    for label in range(3):
        assert (label in theirs.prototypes) == held[label]
        np.testing.assert_allclose(
            ours.state["prototypes"][label], theirs.prototypes[label].numpy(), rtol=1e-5, atol=1e-6
        )
    assert farthest(ours.named(), theirs.named()) < 1e-6


def test_records_against_classes_in_python_give_the_same_accuracies():
    given = tiny(12, 10)
    method = FedProto(training=AS_PFLLIB, pull=1.0, predict="prototype")
    ours, theirs = Engine(given, method), ProtoServer(given, AS_PFLLIB, 1.0)
    trained(ours, theirs, rounds=1)
    theirs.round()
    found = ours.round(test=True)
    assert found == pfllib_evaluation.accuracies(theirs)
    assert 0 < min(found) < 1


def test_a_tidy_loop_over_modules_gives_the_same_parameters():
    given = tiny().double()
    method = FedProto(training=BATCHES, pull=1.0)
    ours, theirs = trained(Engine(given, method), TidyServer(given, BATCHES, 1.0))
    assert farthest(ours.named(), theirs.named()) < 1e-6


def test_a_padded_vmap_gives_the_same_parameters_of_ragged_clients():
    given = tiny(23, 5, 2).double()
    ours, theirs = trained(Engine(given, LocalOnly(training=BATCHES)), Padded(given, BATCHES))
    assert farthest(ours.named(), theirs.named()) < 1e-8
    assert theirs.steps_G.tolist() == [36, 12, 6]


@pytest.mark.parametrize("rule", [None, training.DCR.model_copy(update={"radius": 5.0})])
def test_training_as_in_vpdr_gives_the_same_parameters(rule):
    given = tiny(9, 5, 2, hidden=(5,)).double()
    method = FedProto(training=BATCHES, pull=0.5, mse="broadcast_as_published", weights="published")
    ours, theirs = trained(Engine(given, method, rule=rule), VpdrServer(given, BATCHES, 0.5, rule), rounds=4)
    assert farthest(ours.named(), theirs.named()) < 1e-6


@pytest.mark.parametrize(
    "changed",
    [
        {"method": {"mse": "intended"}},
        {"method": {"weights": "uniform"}},
        {"rule": {"warm_up": 0}},
        {"rule": {"scaled": False}},
        {"rule": {"clamped": False}},
        {"rule": {"momentum": 0.5}},
    ],
)
def test_the_comparison_with_vpdr_sees_every_choice_of_the_published_code(changed):
    given = tiny(9, 5, 2, hidden=(5,)).double()
    published = training.DCR.model_copy(update={"radius": 5.0})
    settings = {"mse": "broadcast_as_published", "weights": "published"} | changed.get("method", {})
    method = FedProto(training=BATCHES, pull=0.5, **settings)
    rule = published.model_copy(update=changed.get("rule", {}))
    ours, theirs = trained(
        Engine(given, method, rule=rule), VpdrServer(given, BATCHES, 0.5, published), rounds=4
    )
    assert farthest(ours.named(), theirs.named()) > 1e-5


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_release_as_in_vpdr_gives_the_same_prototypes(shuffled, monkeypatch):
    monkeypatch.setattr(release_pairs, "RECORDS", 61)
    monkeypatch.setattr(release_pairs, "DIM", 12)
    said, void = release_pairs.same_prototypes(3, shuffled)
    assert not void, said
    monkeypatch.setattr(vpdr_release.Release, "_clipped", lambda self, z_nd, informative_d: z_nd)
    said, void = release_pairs.same_prototypes(3, shuffled)
    assert void, said


def test_the_noise_of_both_releases_has_the_same_size(monkeypatch):
    monkeypatch.setattr(release_pairs, "RECORDS", 60)
    monkeypatch.setattr(release_pairs, "DIM", 12)
    release, scale = release_pairs.settings(noisy=True)
    mechanism = release_pairs.mechanism()
    x, y = release_pairs.embeddings(3, shuffled=False)
    records = release_pairs.Embeddings(
        vectors=x.astype(float), labels=y, encoder=release_pairs.DependsOn.PUBLIC
    )
    event = mechanism.event(records)
    choice, noisy = event.events  # type: ignore[union-attr]
    assert scale == choice.scale
    np.testing.assert_allclose(release.stds, np.multiply(noisy.noise_multipliers, noisy.clip_norms))


def test_a_module_computes_what_the_network_does():
    given = tiny(4, hidden=(5, 4)).double()
    model, engine = Model.of(given), Engine(given, LocalOnly(training=BATCHES))
    x = engine.fleet.cohort.x
    network, params = engine.fleet.network, engine.fleet.params
    torch.testing.assert_close(model(x[0]), network.logits(params, network.embed(params, x))[0])
    back = to_privkit(from_privkit(given.start))
    assert {name: p.tolist() for name, p in back.items()} == {n: p.tolist() for n, p in given.start.items()}


# ---------------------------------------------------------------------- the protocol


def pair(void: bool, calls: list[str]) -> pairs.Pair:
    def side(name: str) -> Any:
        return lambda: partial(calls.append, name)

    return pairs.Pair(
        module="benchmarks.training",
        id="P0",
        workload="nothing",
        peer="nobody",
        ours=side("ours"),
        theirs=side("theirs"),
        check=lambda: ("far apart" if void else "equal", void),
        must=1.0,
        stretch=2.0,
        turns=2,
        loops=3,
    )


def test_a_row_whose_check_fails_is_void_and_not_timed():
    calls: list[str] = []
    (found,) = pair(True, calls).results()
    assert (found.verdict, found.check, calls) == ("VOID", "far apart", [])
    assert np.isnan(found.value)


def test_both_sides_are_warmed_up_and_take_turns():
    calls: list[str] = []
    found = pair(False, calls).ratios()
    assert calls == ["ours", "theirs", *(["theirs", *["ours"] * 3] * 2)]
    assert len(found) == 2


def test_a_row_is_timed_and_measured_in_processes_of_its_own(monkeypatch):
    said = {"ratios": "[3.0, 1.0, 2.5]", "ours": "7", "theirs": "9"}
    monkeypatch.setattr(pairs, "in_child", lambda *command: said[command[-1]])
    (found,) = pair(False, []).results()
    assert (found.value, found.low, found.high, found.verdict) == (2.5, 1.0, 3.0, "stretch")
    assert found.check == "equal; peak memory 7 MB, theirs 9 MB"


@pytest.mark.slow
def test_a_process_of_its_own_finds_its_row():
    release = next(p for p in training.PAIRS.values() if p.id == "P6")
    ratios = json.loads(pairs.in_child("benchmarks.pairs", release.module, release.key, "ratios"))
    assert len(ratios) == release.turns
    assert min(ratios) > 1


def test_every_row_can_be_found_again_by_its_child():
    assert all(
        p.module == "benchmarks.training" and training.PAIRS[p.key] is p for p in training.PAIRS.values()
    )
    assert {p.id for p in training.PAIRS.values()} == {"P1", "P2", "P3", "P4", "P5", "P5b", "P6"}
    assert {"training", "overhead"} <= set(SECTIONS)


PEAK = """
import numpy as np
from benchmarks import pairs

def build():
    inputs = np.ones(20_000_000)
    return lambda: (inputs[:1] + np.ones(10_000_000)).sum()

print(pairs.peak_of(build))
"""


@pytest.mark.skipif(not pairs._STATUS.exists(), reason="no mark of peak memory here")
def test_peak_memory_is_what_the_work_adds():
    # in a process of its own, as rows are: what this one freed, it may have kept
    done = subprocess.run([sys.executable, "-c", PEAK], cwd=ROOT, capture_output=True, text=True, check=True)
    assert 140 <= int(done.stdout) <= 200


# ---------------------------------------------------------------------- growth and overhead


def test_slopes_are_exponents():
    assert scaling.slope((10, 40, 160), [3e-3 * n**1.5 for n in (10, 40, 160)]) == pytest.approx(1.5)


def test_growth_is_measured_for_every_method(feature_cache, monkeypatch):
    monkeypatch.setenv("PRIVKIT_CACHE", str(feature_cache))
    names = [row.args[0] for row in scaling.ROWS if isinstance(row, partial)]
    assert names == plug.names("privkit.methods")
    monkeypatch.setattr(scaling, "CLIENTS", (1, 2))
    for name in ("fedproto", scaling.QUADRATIC):
        (found,) = scaling.with_clients(name)
        assert (found.must is None) == (name == scaling.QUADRATIC)


def test_a_round_has_a_time_each(feature_cache, monkeypatch):
    monkeypatch.setenv("PRIVKIT_CACHE", str(feature_cache))
    found = scaling.trained(scaling.study("local_only", clients=2, rounds=3))
    assert len(found) == 3
    assert min(found) > 0


def test_the_published_overhead_is_that_of_the_paper():
    shares = {
        stage: 100 * sum(parts.values()) / whole for stage, (whole, parts) in overhead.PUBLISHED.items()
    }
    assert shares == {
        "ProtoGen": pytest.approx(2.18, abs=5e-3),
        "local training": pytest.approx(0.22, abs=5e-3),
    }


def test_every_published_part_is_measured(monkeypatch):
    monkeypatch.setattr(overhead, "four", partial(tiny, 40, 30, hidden=(5,)))
    monkeypatch.setattr(overhead, "BATCH", 8)
    monkeypatch.setattr(overhead, "TURNS", 1)
    monkeypatch.setattr(overhead, "picture_seconds", lambda: (0.01, "a pass"))
    found = overhead.measured()
    for stage, (_, parts) in overhead.PUBLISHED.items():
        shown = {r.workload.removeprefix(f"{stage}: "): r for r in found if r.workload.startswith(stage)}
        assert {*parts, "all"} <= set(shown)
        assert all("published" in r.check for r in shown.values())
    cached = {r.workload: r.value for r in found if r.peer == "cached features"}
    assert all(
        0 < r.value < cached[r.workload] for r in found if r.peer == "a pass" and cached[r.workload] > 0
    )
