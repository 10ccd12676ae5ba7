"""What cannot be trained is refused before it begins; a run that diverges is named, and its neighbours go on."""

import filecmp
import shutil
from pathlib import Path

import pytest
import yaml

from privkit.audit.cells import cells
from privkit.errors import DivergedError, InputError
from privkit.store import Run
from privkit.study import load
from privkit.train.loop import train

BASE = {
    "data": {"name": "digits", "per_class": 40, "domains": ["mnist", "syn"]},
    "encoder": "usps_cnn",
    "rounds": 2,
    "method": {"name": "mpft", "prototypes": "mean"},
    "defense": "none",
}
NOISY = {"defense": {"name": "vpp", "epsilon": 0.01, "clip_norm": 20.0}}


def study(folder: Path, **cells: dict):
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump({**BASE, "cells": cells}))
    return load(path)


def test_a_server_that_diverges_in_one_cell_leaves_the_others_alone(tmp_path):
    cells = {
        "noisy": NOISY,
        "fine": {},
        "later": {"method": {"name": "local_only"}, "rounds": 3},
    }
    with pytest.raises(
        DivergedError, match=r"cell noisy \(seed 0\) diverged in round \d: the server's .*; change"
    ):
        train(study(tmp_path, **cells), tmp_path / "runs", device="cpu")
    assert Run(tmp_path / "runs" / "fine" / "seed-0").complete
    assert Run(tmp_path / "runs" / "later" / "seed-0").complete
    assert not Run(tmp_path / "runs" / "noisy" / "seed-0").complete


def test_a_neighbour_of_a_run_that_diverged_has_the_numbers_that_it_has_alone(tmp_path):
    with pytest.raises(DivergedError):
        train(study(tmp_path, noisy=NOISY, fine={}), tmp_path / "both", device="cpu")
    train(study(tmp_path, fine={}, same={}), tmp_path / "alone", device="cpu")
    for round in range(2):
        name = Path("fine") / "seed-0" / "uploads" / f"round-{round:06d}.safetensors"
        assert filecmp.cmp(tmp_path / "both" / name, tmp_path / "alone" / name, shallow=False)


def test_the_same_command_says_the_same_again_and_without_that_cell_all_is_well(tmp_path):
    for _ in range(2):
        with pytest.raises(DivergedError, match="cell noisy"):
            train(study(tmp_path, noisy=NOISY, fine={}), tmp_path / "runs", device="cpu")
    assert len(train(study(tmp_path, fine={}, same={}), tmp_path / "runs", device="cpu")) == 2


def test_every_run_that_diverged_is_counted(tmp_path):
    with pytest.raises(DivergedError, match=r"cell one .*, and 1 more run diverged; change"):
        train(study(tmp_path, one=NOISY, two=NOISY), tmp_path / "runs", device="cpu")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (
            {
                "method": {"name": "fedproto", "weights": "published"},
                "defense": {"name": "sumcount", "epsilon": 8.0},
            },
            "cell odd: client 0 sent no exact record counts.*; set weights to uniform",
        ),
        (
            {
                "method": {"name": "fedavg_head"},
                "mixed": [{"encoder": "usps_cnn"}, {"encoder": "usps_cnn", "model": {"hidden": [4]}}],
            },
            "cell odd: client 1 sent head.*model.hidden",
        ),
    ],
)
def test_messages_that_no_server_could_merge_are_refused_before_anything_is_written(tmp_path, cell, message):
    with pytest.raises(InputError, match=message):
        train(study(tmp_path, fine={}, odd=cell), tmp_path / "runs", device="cpu")
    assert not (tmp_path / "runs").exists()


def test_embeddings_that_are_not_finite_end_their_run_alone(tmp_path):
    # one step: parameters stay finite, and what they give does not
    wild = {
        "method": {"name": "fedproto", "training": {"learning_rate": 1e22, "epochs": 1, "batch_size": 4096}},
        "model": {"adapter": 8},
    }
    with pytest.raises(
        DivergedError,
        match=r"cell wild \(seed 0\) diverged in round 1: an embedding of client 0 is not finite; lower",
    ):
        train(study(tmp_path, wild=wild, fine={}), tmp_path / "runs", device="cpu")
    assert Run(tmp_path / "runs" / "fine" / "seed-0").complete
    assert Run(tmp_path / "runs" / "wild" / "seed-0").completed == 1


def test_a_run_that_diverged_is_out_of_the_way_once_its_folder_is_deleted(tmp_path):
    with pytest.raises(DivergedError, match="remove the cell and its folder"):
        train(study(tmp_path, noisy=NOISY, fine={}), tmp_path / "runs", device="cpu")
    folders = [Run(tmp_path / "runs" / name / "seed-0") for name in ("noisy", "fine")]
    with pytest.raises(InputError, match="or delete its folder if it diverged"):
        cells(folders)
    shutil.rmtree(tmp_path / "runs" / "noisy")
    assert [cell.name for cell in cells(folders[1:])] == ["fine"]
