"""Training: the same bytes again, after any kill, and whoever else is in the batch."""

import gc
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from privkit.data._base import Domain
from privkit.data.digits import Digits
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod, State
from privkit.release import Payload, Prototypes
from privkit.servers._base import AbstractServer
from privkit.servers.honest import HonestServer
from privkit.store import Run
from privkit.study import Study, load, merged, plans
from privkit.train import study as studies
from privkit.train.encoded import encode
from privkit.train.loop import device_named, train

SETTINGS: dict[str, Any] = {
    "data": {"name": "digits", "domains": ["mnist", "syn"], "per_class": 10},
    "encoder": {"name": "usps_cnn"},
    "model": {"adapter": 3},
    "method": {"name": "fedproto", "pull": 1.0, "training": {"batch_size": 12, "learning_rate": 0.01}},
    "defense": {"name": "none"},
    "canaries": {"count": 4, "norm": 3.0},
    "rounds": 3,
    "seeds": 2,
    "cells": {
        "plain": {},
        "noisy": {"defense": {"name": "igpp", "epsilon": 8.0}, "split": {"pool": 0.4}},
    },
}
RUNS = ("plain/seed-0", "plain/seed-1", "noisy/seed-0", "noisy/seed-1")

KILL = """
import os, signal, sys
from pathlib import Path

import pandas, pyarrow.parquet, safetensors.numpy

from privkit.study import load
from privkit.train.loop import train

os.fsync = lambda handle: None
rename = Path.replace
study, moments, roots = load(Path(sys.argv[1])), sys.argv[2::2], sys.argv[3::2]


def train_until(moment, root):
    left = moment

    def replace(self, target):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return rename(self, target)

    Path.replace = replace
    train(study, root, device="cpu")
    os._exit(0)


for moment, root in zip(moments, roots, strict=True):
    child = os.fork() or train_until(int(moment), Path(root))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a kill does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def write(folder: Path, **changes: Any) -> Path:
    """Write the settings, with changes, to a configuration file."""
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(merged(SETTINGS, changes), sort_keys=False))
    return path


def study(folder: Path, **changes: Any) -> Study:
    return load(write(folder, **changes))


def single(folder: Path, cell: str, **changes: Any) -> Study:
    """Return the study of one cell and one seed."""
    base = {**SETTINGS, "seeds": 1, "cells": {cell: SETTINGS["cells"][cell]}}
    path = folder / "single.yaml"
    path.write_text(yaml.safe_dump(merged(base, changes), sort_keys=False))
    return load(path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a study that was trained without interruption; do not change it."""
    root = tmp_path_factory.mktemp("finished") / "runs"
    train(study(root.parent), root, device="cpu")
    return root


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """Return a copy of the finished study."""
    return shutil.copytree(finished, tmp_path / "runs")


def tree(root: Path) -> dict[str, bytes]:
    """Return the content of every file but the times and what hidden files hold."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "timing.json" and not path.name.startswith(".")
    }


def written_at(root: Path, *, but: str = " ") -> dict[str, int]:
    """Return when every file, times included, was written."""
    return {
        path.relative_to(root).as_posix(): path.stat().st_mtime_ns
        for path in root.rglob("*")
        if path.is_file() and not path.relative_to(root).as_posix().startswith((but, "."))
    }


def assert_same(one: Path, other: Path) -> None:
    found, wanted = tree(one), tree(other)
    assert sorted(found) == sorted(wanted)
    assert [name for name in wanted if found[name] != wanted[name]] == []


def uploads(path: Path) -> list[tuple[int, int, Prototypes]]:
    found = []
    for release in Run(path).transcript().releases:
        assert isinstance(release.payload, Prototypes)
        found.append((release.round, release.client, release.payload))
    return found


# ---------------------------------------------------------------------- what a run holds


def test_every_file_of_a_run_is_there(finished):
    files = {Path(name).relative_to(RUNS[2]) for name in tree(finished) if name.startswith(RUNS[2])}
    rounds = [f"round-{t:06d}.safetensors" for t in range(4)]
    assert {path.as_posix() for path in files} == {
        *("run.json", "ledger.jsonl", "metrics.parquet", "truth/answers.safetensors"),
        *(f"candidates/{name}.safetensors" for name in ("records", "reference", "canaries")),
        *(f"uploads/{name}" for name in rounds[:3]),
        *(f"truth/{name}" for name in rounds[:3]),
        *(f"state/{name}" for name in rounds[2:]),
    }


def test_the_first_upload_is_the_mean_of_the_members(finished):
    run = Run(finished / RUNS[0])
    records, members = run.records("records"), run.truth().members
    assert records is not None
    for round, client, payload in uploads(run.path):
        for label in range(10) if round == 0 else ():
            mine = members & (records.clients == client) & (records.labels == label)
            row = payload.labels.tolist().index(label)
            np.testing.assert_allclose(payload.vectors[row], records.vectors[mine].mean(0), atol=1e-6)
            assert payload.counts is not None
            assert payload.counts[row] == mine.sum() == 3


def test_canaries_are_released_but_never_reach_the_server(finished):
    for path in RUNS:
        run = Run(finished / path)
        for _, _, payload in uploads(run.path):
            assert payload.labels.tolist() == list(range(11))
            assert payload.counts is not None
            assert payload.counts[10] == 4
        state = run.state(3)
        assert state["server.prototypes"].shape == (10, 128)
        assert state["server.holders"].tolist() == [2] * 10


def test_what_is_kept_as_clean_is_the_upload_without_its_noise(finished):
    for path, noisy in zip(RUNS, (False, False, True, True), strict=True):
        hidden = Run(finished / path).truth().hidden
        for round, client, payload in uploads(finished / path):
            kept = hidden[round, client].means
            assert kept.shape == payload.vectors.shape
            assert np.array_equal(kept.astype(np.float32), payload.vectors) is not noisy
            assert not noisy or np.linalg.norm(kept, axis=1).max() <= 1 + 1e-6


def test_seeds_differ_in_their_members(finished):
    one, other = (Run(finished / name).truth().members for name in RUNS[2:])
    assert not np.array_equal(one, other)


def test_noise_is_fresh_in_every_round_client_and_seed(finished):
    drawn = []
    for run in (Run(finished / name) for name in RUNS[2:]):
        hidden = run.truth().hidden
        noise = [
            payload.vectors - hidden[round, client].means for round, client, payload in uploads(run.path)
        ]
        drawn += [(n / n.std(1, keepdims=True)).ravel() for n in noise]
    assert len(drawn) == 12
    assert np.abs(np.corrcoef(drawn) - np.eye(12)).max() < 5 / len(drawn[0]) ** 0.5


@pytest.mark.parametrize(("name", "least"), [(RUNS[0], 0.5), (RUNS[3], 0.0)])
def test_accuracy_is_that_of_the_final_parameters(finished, name, least):
    (plan,) = [p for p in plans(study(finished.parent)) if p.name == name]
    data = encode(plan.config)
    state = Run(finished / name).state(3)
    table = pq.read_table(finished / name / "metrics.parquet").to_pylist()
    assert [(row["round"], row["client"], row["domain"]) for row in table] == [
        (t, m, name) for t in range(3) for m, name in enumerate(("mnist", "syn"))
    ]
    for m, split in enumerate(studies.parts(plan, data)):
        p = {name.removeprefix("params."): v[m] for name, v in state.items() if name.startswith("params.")}
        x, y = data.x[m][split.test], data.y[m][split.test]
        u = x + np.maximum(x @ p["adapter.down"], 0) @ p["adapter.up"]
        right = (u @ p["head.weight"] + p["head.bias"]).argmax(1) == y
        assert table[4 + m]["accuracy"] == pytest.approx(right.mean())
        assert right.mean() > least


# ---------------------------------------------------------------------- batches


@pytest.mark.parametrize("cell", ["plain", "noisy"])
def test_a_run_trained_alone_is_the_run_trained_in_a_batch(finished, tmp_path, cell):
    (alone,) = train(single(tmp_path, cell), tmp_path / "alone", device="cpu")
    assert alone == tmp_path / "alone"
    one, batched = Run(alone), Run(finished / cell / "seed-0")
    assert len(one.batch) == 1
    assert len(batched.batch) == 4
    for name, array in one.state(3).items():
        np.testing.assert_allclose(array, batched.state(3)[name], atol=1e-5, err_msg=name)
    for (*key, mine), (*other, theirs) in zip(uploads(one.path), uploads(batched.path), strict=True):
        assert key == other
        np.testing.assert_allclose(mine.vectors, theirs.vectors, atol=1e-5)
        assert np.array_equal(mine.tensors()["counts"], theirs.tensors()["counts"])


def test_training_moves_adapter_and_head(finished):
    before, after = (Run(finished / RUNS[0]).state(t) for t in (2, 3))
    for name in ("head.weight", "head.bias", "adapter.up", "adapter.down"):
        assert (before[f"params.{name}"] != after[f"params.{name}"]).any()
    assert after["steps.all"].tolist() == [18, 18]  # 30 records, 12 at a time, 2 epochs in each of 3 rounds


def test_the_same_seed_gives_the_same_bytes(finished, tmp_path):
    train(study(tmp_path), tmp_path / "runs", device="cpu")
    assert_same(tmp_path / "runs", finished)


def test_training_a_finished_study_writes_nothing(copy):
    before = written_at(copy)
    assert train(study(copy.parent), copy, device="cpu") == [copy / name for name in RUNS]
    assert written_at(copy) == before


def test_more_seeds_train_only_the_new_ones(finished, tmp_path):
    root = tmp_path / "runs"
    train(study(tmp_path, seeds=1), root, device="cpu")
    before = written_at(root)
    train(study(tmp_path), root, device="cpu")
    after = written_at(root)
    assert {name: after[name] for name in before} == before
    assert {name.rpartition("seed-")[2][0] for name in after.keys() - before.keys()} == {"1"}
    assert Run(root / RUNS[3]).batch == [RUNS[1], RUNS[3]]
    for (_, _, mine), (_, _, theirs) in zip(
        uploads(root / RUNS[3]), uploads(finished / RUNS[3]), strict=True
    ):
        np.testing.assert_allclose(mine.vectors, theirs.vectors, atol=1e-5)


def test_a_single_run_does_not_grow_into_a_study(tmp_path):
    root = tmp_path / "runs"
    train(single(tmp_path, "plain", rounds=1), root, device="cpu")
    before = tree(root)
    with pytest.raises(InputError, match="holds a single run; train several cells or seeds into a new"):
        train(single(tmp_path, "plain", rounds=1, seeds=2), root, device="cpu")
    assert tree(root) == before


# ---------------------------------------------------------------------- kills


def kill(config: Path, *trainings: tuple[int, Path]) -> list[int]:
    """Train in other processes, each killed before its n-th rename, and return how each of them ended."""
    done = subprocess.run(
        [sys.executable, "-c", KILL, str(config), *(str(part) for pair in trainings for part in pair)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    return [int(line) for line in done.stdout.split()]


def completed(root: Path) -> list[int]:
    """Return the committed rounds of each run, -1 where there is none yet."""
    return [Run(root / n).completed if (root / n / "run.json").exists() else -1 for n in RUNS]


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

# Renames before the kill, and the rounds that are committed then. A run takes 5 renames to begin (run.json
# first), 5 for a round (run.json last), and one for its times.
MOMENTS = {
    0: [-1, -1, -1, -1],
    7: [0, 0, -1, -1],
    19: [0, 0, 0, 0],
    24: [0, 0, 0, 0],
    25: [1, 0, 0, 0],
    43: [1, 1, 1, 1],
    59: [2, 2, 2, 1],
    65: [3, 2, 2, 2],
    81: [3, 3, 3, 3],
}


@pytest.fixture(scope="module")
def killed(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of trainings that were killed: at each moment, again and again, and in a rebuild."""
    folder = tmp_path_factory.mktemp("killed")
    shutil.rmtree(shutil.copytree(finished, folder / "rebuilt") / RUNS[2])
    at_moments = [(moment, folder / str(moment)) for moment in MOMENTS]
    ends = kill(write(folder), *at_moments, *[(27, folder / "again")] * 5, (11, folder / "rebuilt"))
    assert ends == [-9] * len(MOMENTS) + [-9, -9, -9, 0, 0] + [-9]
    return folder


@needs_fork
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_training_killed_anywhere_goes_on_to_the_same_bytes(finished, killed, moment):
    root = killed / str(moment)
    assert completed(root) == MOMENTS[moment]
    train(study(killed), root, device="cpu")
    assert_same(root, finished)


@needs_fork
def test_a_training_killed_again_and_again_ends_with_the_same_bytes(finished, killed):
    assert_same(killed / "again", finished)


def test_a_removed_run_is_rebuilt_and_its_siblings_are_left_alone(copy, finished):
    shutil.rmtree(copy / RUNS[1])
    before = written_at(copy)
    train(study(copy.parent), copy, device="cpu")
    assert written_at(copy, but=RUNS[1]) == before
    assert_same(copy, finished)


def test_a_run_goes_on_in_the_batch_it_was_begun_in(copy):
    for name in RUNS[2:]:
        shutil.rmtree(copy / name)
    for name, batch, rounds in ((RUNS[0], RUNS[:3], 3), (RUNS[1], RUNS[:2], 2)):
        document = json.loads((copy / name / "run.json").read_text())
        document["batch"] = batch
        document["progress"]["rounds"] = rounds
        (copy / name / "run.json").write_text(json.dumps(document))
    groups = studies.batches(copy, plans(study(copy.parent)))
    assert [[plan.name for plan in group] for group in groups] == [[*RUNS[:2]], [*RUNS[2:]]]


class Ragged(Digits):
    """Two domains, the second three times as large as the first."""

    def load(self) -> tuple[Domain, ...]:
        small, large = Digits(domains=("mnist",), per_class=5), Digits(domains=("syn",), per_class=15)
        return (*small.load(), *large.load())


def test_clients_of_different_sizes_keep_their_own_state(tmp_path):
    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("train", 1):
            raise KeyboardInterrupt

    config = single(tmp_path, "plain").cells["plain"].model_copy(update={"data": Ragged()})
    ragged = Study(cells={"ragged": config}, seeds=1)
    train(ragged, tmp_path / "through", device="cpu")
    with pytest.raises(KeyboardInterrupt):
        train(ragged, tmp_path / "stopped", device="cpu", progress=stop)
    train(ragged, tmp_path / "stopped", device="cpu")
    assert_same(tmp_path / "stopped", tmp_path / "through")
    state = Run(tmp_path / "through").state(3)
    assert state["steps.all"].tolist() == [6, 24]  # 10 and 40 records, 12 at a time, 2 epochs, 3 rounds
    assert [p.counts.sum() for _, _, p in uploads(tmp_path / "through")[:2] if p.counts is not None] == [
        14,
        44,
    ]


@needs_fork
def test_rebuilding_a_removed_run_survives_a_kill(finished, killed):
    assert completed(killed / "rebuilt") == [3, 3, 1, 3]
    train(study(killed), killed / "rebuilt", device="cpu")
    assert_same(killed / "rebuilt", finished)


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"cells": {"noisy": {"defense": {"epsilon": 4.0}}}}, "config.defense.epsilon: 8.0 there, 4.0 now"),
        ({"method": {"pull": 2.0}}, "config.method.pull: 1.0 there, 2.0 now"),
        ({"rounds": 4}, "config.rounds: 3 there, 4 now"),
        ({"data": {"per_class": 11}}, "config.data.per_class: 10 there, 11 now"),
    ],
)
def test_a_changed_configuration_is_refused_by_name_and_nothing_is_overwritten(copy, changes, difference):
    for name in RUNS[2:]:
        shutil.rmtree(copy / name / "uploads")  # so that a training would have something to write
    before = tree(copy)
    with pytest.raises(InputError, match=f"was created with another {difference}; use a new --out folder"):
        train(study(copy.parent, **changes), copy, device="cpu")
    assert tree(copy) == before


def test_a_sibling_whose_method_changed_is_trained_by_its_own_method(copy):
    for name in RUNS[2:]:
        shutil.rmtree(copy / name)
    before = written_at(copy)
    local = {"cells": {"noisy": {"method": {"name": "local_only"}}}}
    train(study(copy.parent, **local), copy, device="cpu")
    assert {name: t for name, t in written_at(copy).items() if name in before} == before
    assert Run(copy / RUNS[2]).batch == list(RUNS[2:])
    assert Run(copy / RUNS[2]).transcript().releases == ()


def test_training_that_diverges_is_refused_with_its_way_out(tmp_path):
    wild = {"method": {"training": {"learning_rate": 1e30}}}
    with pytest.raises(
        InputError, match=r"cell .* \(seed 0\) diverged in round 1: .* of client 0 .*; lower method.training"
    ):
        train(single(tmp_path, "plain", **wild), tmp_path / "runs", device="cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:x", ""])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(InputError, match="use auto, cpu or cuda"):
        device_named(name)


def test_a_missing_cuda_device_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_named("auto").type == "cpu"
    with pytest.raises(InputError, match="torch sees no CUDA device"):
        device_named("cuda:1")


# ---------------------------------------------------------------------- servers and controls


def serving(study: Study, server: AbstractServer) -> Study:
    """The same study with another server."""
    cells = {name: config.model_copy(update={"server": server}) for name, config in study.cells.items()}
    return replace(study, cells=cells)


class Liar(HonestServer):
    """Tells client 0 that every prototype lies somewhere far away."""

    told: ClassVar[dict[int, State]] = {}

    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        honest = self.shared(method, state)
        told = {"prototypes": honest["prototypes"] + 5.0 * (client == 0)}
        self.told[client] = told
        return told


def test_a_malicious_server_can_tell_each_client_something_else(tmp_path):
    once = single(tmp_path, "plain", rounds=1)
    train(once, tmp_path / "honest", device="cpu")
    server = Liar()
    train(serving(once, server), tmp_path / "lied", device="cpu")
    honest, lied = (Run(tmp_path / name).state(1)["params.adapter.up"] for name in ("honest", "lied"))
    assert np.abs(honest[0] - lied[0]).max() > 1e-4
    assert np.array_equal(honest[1], lied[1])
    assert (server.told[0]["prototypes"] != server.told[1]["prototypes"]).all()


class Deaf(HonestServer):
    """Forgets what it was sent."""

    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        assert sorted(uploads) == [0, 1]
        return state


def test_a_server_may_merge_as_it_likes(tmp_path):
    train(serving(single(tmp_path, "noisy", rounds=1), Deaf()), tmp_path / "deaf", device="cpu")
    assert not Run(tmp_path / "deaf").state(1)["server.holders"].any()


def test_local_training_releases_nothing_and_depends_on_no_other_client(tmp_path):
    local = {"method": {"name": "local_only", "training": SETTINGS["method"]["training"]}}
    train(single(tmp_path, "noisy", **local), tmp_path / "two", device="cpu")
    alone = merged(local, {"data": {"domains": ["mnist"]}})
    train(single(tmp_path, "noisy", **alone), tmp_path / "one", device="cpu")
    two, one = Run(tmp_path / "two"), Run(tmp_path / "one")
    assert two.transcript().releases == ()
    assert two.info.promise is None
    assert two.records("canaries") is None
    assert two.truth().hidden == {}
    for name, array in one.state(3).items():
        if name.startswith("params."):
            np.testing.assert_allclose(array[0], two.state(3)[name][0], atol=1e-5)
    accuracies = [pq.read_table(run.path / "metrics.parquet").to_pylist() for run in (one, two)]
    assert accuracies[0] == [row for row in accuracies[1] if row["client"] == 0]


def test_progress_counts_up_to_the_end(tmp_path):
    seen: list[tuple[str, int, int]] = []
    train(
        single(tmp_path, "plain"),
        tmp_path / "runs",
        device="cpu",
        progress=lambda *step: seen.append(step),
    )
    assert seen == [("encode", 0, 1), ("encode", 1, 1), *(("train", t, 3) for t in range(4))]


def test_nothing_accumulates_from_round_to_round(tmp_path):
    """Tensors are as many and as large in round 24 as in round 8; events and accuracies take a little of each round."""
    seen: dict[int, tuple[int, int]] = {}
    traced: dict[int, int] = {}

    def look(stage: str, done: int, total: int) -> None:
        if stage != "train" or done not in (8, 24):
            return
        gc.collect()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of looking at its old names
            tensors = [o for o in gc.get_objects() if isinstance(o, torch.Tensor)]
        seen[done] = len(tensors), sum(t.untyped_storage().nbytes() for t in tensors)
        traced[done] = tracemalloc.get_traced_memory()[0]

    changes = {
        "rounds": 25,
        "model": {"dropout": 0.2, "hidden": [8]},
        "defense": {"name": "vpdr", "epsilon": 8.0, "partition": {"name": "history"}},
    }
    tracemalloc.start()
    try:
        train(single(tmp_path, "plain", **changes), tmp_path / "runs", device="cpu", progress=look)
    finally:
        tracemalloc.stop()
    assert seen[24] == seen[8]
    assert traced[24] - traced[8] < 16 * 4_000
