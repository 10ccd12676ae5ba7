"""bfloat16 arithmetic: how far it ends from float32, that a run says so, and that float32 stays what it was."""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml

from privkit.config import Precision
from privkit.errors import InputError
from privkit.release import Prototypes
from privkit.store import Run
from privkit.study import load, merged
from privkit.train.local import Fleet
from privkit.train.loop import train
from tests.test_train import assert_same, tree

BASE: dict[str, Any] = {
    "data": {"name": "digits", "per_class": 40},
    "encoder": "usps_cnn",
    "model": {"adapter": 16, "hidden": [64]},
    "method": {"name": "fedproto", "pull": 1.0, "training": {"batch_size": 16, "learning_rate": 1e-3}},
    "defense": {"name": "vpdr", "epsilon": 8.0},
    "rounds": 2,
}
PLACES = {"after": {}, "inside": {"model": {"inside": True}}, "frozen": {"model": {"adapter": None}}}


@pytest.fixture(scope="module", autouse=True)
def fast_disk() -> Iterator[None]:
    """Wait for no disk: only a power cut needs that, a kill does not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def write(folder: Path, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(merged(BASE, changes), sort_keys=False))
    return path


def trained(folder: Path, **changes: Any) -> Run:
    (path,) = train(load(write(folder, **changes)), folder / "runs", device="cpu")
    return Run(path)


def accuracies(run: Run) -> np.ndarray:
    return np.array(pq.read_table(run.path / "metrics.parquet")["accuracy"])


@pytest.fixture(scope="module", params=list(PLACES))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run, str]:
    """Return the same run in float32 and in bfloat16, with the adapters in one of three places."""
    folder, changes = tmp_path_factory.mktemp(request.param), PLACES[request.param]
    one = trained(folder / "fp32", **changes)
    return one, trained(folder / "bf16", **changes, precision="bf16"), request.param


def test_bfloat16_ends_near_float32(pair):
    """After two rounds of 16 steps, parameters are off by less than 8 % of the way that they went.

    Measured: 4.6 % with adapters after the backbone, 5.6 % inside, 6.2 % with none. AdamW turns a small error of a
    small gradient into a whole step: single parameters are off by up to three quarters of the longest way.
    """
    one, other, place = pair
    config = load(one.path.parent / "study.yaml").cells["study"]
    start = config.model.build(config.encoder).start(dim=128, num_classes=10, seed=0)
    moved, apart = [], []
    for name, before in start.items():
        exact, rounded = (run.state(2)[f"params.{name}"] for run in (one, other))
        moved.append((exact - before).ravel())
        apart.append((rounded - exact).ravel())
    share = np.linalg.norm(np.concatenate(apart)) / np.linalg.norm(np.concatenate(moved))
    assert 1e-3 < share < 0.08, place
    assert np.abs(np.concatenate(apart)).max() < 32 * 1e-3


def test_bfloat16_classifies_as_well(pair):
    """No client's share of 80 test records is off by more than two of them, their mean by less than one."""
    one, other = (accuracies(run) for run in pair[:2])
    assert np.abs(one - other).max() <= 2 / 80 + 1e-9
    assert abs(one.mean() - other.mean()) < 1 / 80


def test_what_leaves_and_what_is_kept_is_float32(pair):
    for run in pair[:2]:
        for release in run.transcript().releases:
            assert isinstance(release.payload, Prototypes)
            assert release.payload.vectors.dtype == np.float32
        kept = {name: a.dtype for name, a in run.state(2).items()}
        assert {kept[n] for n in kept if n.startswith(("params", "first", "second", "rule.head"))} == {
            np.dtype(np.float32)
        }


def test_the_first_release_is_before_any_rounding(pair):
    """Adapters that do nothing yet add a zero; features from the cache never were bfloat16."""
    one, other, place = pair
    first = [
        r.payload.vectors
        for run in (one, other)
        for r in run.transcript().releases
        if r.round == 0 and isinstance(r.payload, Prototypes)
    ]
    exact = [np.array_equal(a, b) for a, b in zip(first[:4], first[4:], strict=True)]
    assert all(exact) is (place != "inside")


def test_a_run_says_in_which_numbers_it_was_computed(pair):
    for run, wanted in zip(pair[:2], ("fp32", "bf16"), strict=True):
        document = json.loads((run.path / "run.json").read_text())
        assert document["run"]["config"]["precision"] == wanted


def test_going_on_in_other_numbers_is_refused(pair, tmp_path):
    one, other, place = pair
    for run, wanted, now in ((one, "fp32", "bf16"), (other, "bf16", "fp32")):
        root = shutil.copytree(run.path, tmp_path / wanted)
        before = tree(root)
        path = write(tmp_path, **PLACES[place], precision=now)
        message = rf"another config\.precision: '{wanted}' there, '{now}' now; use a new --out"
        with pytest.raises(InputError, match=message):
            train(load(path), root, device="cpu")
        assert tree(root) == before


def test_bfloat16_gives_the_same_bytes_again(pair, tmp_path):
    def stop(stage: str, done: int, total: int) -> None:
        if (stage, done) == ("train", 1):
            raise KeyboardInterrupt

    _, other, place = pair
    study = load(write(tmp_path, **PLACES[place], precision="bf16"))
    with pytest.raises(KeyboardInterrupt):
        train(study, tmp_path / "runs", device="cpu", progress=stop)
    train(study, tmp_path / "runs", device="cpu")
    assert_same(tmp_path / "runs", other.path)


def test_float32_is_computed_as_if_there_were_no_other_numbers(pair, tmp_path, monkeypatch):
    one, _, place = pair
    monkeypatch.setattr(Fleet, "arithmetic", lambda self: contextlib.nullcontext())
    assert_same(trained(tmp_path / "plain", **PLACES[place]).path, one.path)


def test_runs_in_different_numbers_are_different_batches(tmp_path):
    changes = {"cells": {"a": {}, "b": {"precision": "bf16"}}, "rounds": 1}
    paths = train(load(write(tmp_path, **changes)), tmp_path / "runs", device="cpu")
    assert [Run(path).batch for path in paths] == [["a/seed-0"], ["b/seed-0"]]


def test_float32_is_not_rounded_to_tensor_float():
    """It is torch's default for products of matrices, and nothing here turns it on."""
    assert torch.get_float32_matmul_precision() == "highest"
    assert torch.backends.cuda.matmul.allow_tf32 is False
    assert list(Precision) == [Precision.FP32, Precision.BF16]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_cuda_computes_in_float32_too(tmp_path):
    changes = {"model": {"inside": True}}
    (path,) = train(load(write(tmp_path, **changes)), tmp_path / "cuda", device="cuda")
    assert torch.backends.cudnn.allow_tf32 is False
    assert torch.backends.cuda.matmul.allow_tf32 is False
    exact = trained(tmp_path / "cpu", **changes)
    for release, other in zip(Run(path).transcript().releases, exact.transcript().releases, strict=True):
        assert isinstance(release.payload, Prototypes)
        assert isinstance(other.payload, Prototypes)
        np.testing.assert_allclose(release.payload.vectors, other.payload.vectors, atol=1e-4)
