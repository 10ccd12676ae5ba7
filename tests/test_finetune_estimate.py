"""What training in the gradient lab is said to take, held against what it takes."""

import shutil
from collections import namedtuple
from pathlib import Path

import pytest
import torch

from privkit.errors import InputError
from privkit.finetune import estimate
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.loop import train as train_one
from privkit.finetune.study import train
from privkit.study import Study
from tests.finetuned import config

CPU = torch.device("cpu")


def study(**changes) -> Study[FinetuneConfig]:
    return Study(cells={"a": config(**changes), "b": config(**changes, learning_rate=1e-3)}, seeds=1)


def written(root: Path) -> int:
    kept = ("uploads", "broadcast", "state")
    return sum(p.stat().st_size for name in kept for p in root.rglob(f"{name}/*.safetensors"))


@pytest.mark.parametrize(
    "changes", [{}, {"keep": "all"}, {"secure_aggregation": True}, {"transport": "fp16"}], ids=str
)
def test_the_disk_is_counted(changes, tmp_path):
    from privkit.study import plans

    wanted = estimate.estimated(plans(study(**changes)), tmp_path, device=CPU)
    train(study(**changes), tmp_path, device="cpu")
    assert wanted.rounds == 6
    assert wanted.seconds > 0
    # headers of files and metrics are not counted
    assert 0.6 * written(tmp_path) <= wanted.disk <= 1.4 * written(tmp_path)


def test_only_what_is_left_is_counted(tmp_path):
    train_one(config(), tmp_path / "a" / "seed-0", cell="a", device="cpu")
    (said,) = estimate.foretold(study(), tmp_path, device="cpu")
    assert said.startswith("3 rounds are left: about 0 min without what defenses add")
    train(study(), tmp_path, device="cpu")
    assert estimate.foretold(study(), tmp_path, device="cpu") == []


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 9, 1))
    with pytest.raises(InputError, match=r"its disk has 0\.0 MB left; set keep: asked"):
        estimate.foretold(study(), tmp_path / "new" / "folder", device="cpu")
    assert not (tmp_path / "new").exists()
