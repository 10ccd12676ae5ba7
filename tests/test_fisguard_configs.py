"""configs/fisguard-*.yaml: the twelve cells of FISGuard's evaluation, with its settings and sweeps."""

from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from privkit import plug
from privkit.cli.app import app
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.sweeps import defenses
from privkit.finetune.terms import Sampling
from privkit.study import Study, load_as

CONFIGS = Path(__file__).parents[1] / "configs"
PAPER = {"cola": 5e-4, "sst5": 1e-3, "imdb": 5e-4}
NAMES = sorted(path.stem for path in CONFIGS.glob("fisguard-*.yaml"))


@cache
def study(name: str) -> Study[FinetuneConfig]:
    return load_as(FinetuneConfig, CONFIGS / f"{name}.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_a_study_begins_with_its_commands(name):
    lines = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    head = "\n".join(line for line in lines if line.startswith("#"))
    assert f"#   privkit train configs/{name}.yaml" in head
    assert f"#   privkit audit --run runs/{name}" in head
    assert [line for line in lines if len(line) > 120] == []


@pytest.mark.parametrize("name", PAPER)
def test_a_file_has_the_paper_s_settings_and_every_strength_of_every_defense(name):
    cells = study(f"fisguard-{name}").cells
    swept = {n: plug.build("privkit.finetune.defenses", d).settings() for n, d in defenses().items()}
    assert set(cells) == {
        f"{b}-{t}-{d}" for b in ("bert", "gpt2") for t in ("adapter", "lora") for d in swept
    }
    for cell, config in cells.items():
        assert config.defense.settings() == swept[cell.split("-", 2)[2]]
        assert (config.rounds, config.batch, config.local_steps, config.clip) == (50, 16, 1, 1.0)
        assert (config.learning_rate, config.head_learning_rate) == (2e-4, PAPER[name])
        assert (config.data.settings()["clients"], config.public) == (30, 2000)
        assert (config.sampling is Sampling.POISSON) == (config.defense.name == "dpsgd")


def test_the_offline_grid_has_the_same_cells_on_data_that_can_be_had():
    cells = study("fisguard-offline").cells
    named = {cell.split("-", 3)[3] for cell in cells}
    assert named == set(defenses())
    assert len(cells) == 3 * 2 * 2 * len(named)


def test_several_studies_have_no_one_folder(tmp_path):
    files = [str(CONFIGS / f"{name}.yaml") for name in NAMES]
    result = CliRunner().invoke(app, ["train", *files, "--out", str(tmp_path / "runs")])
    assert result.exit_code != 0
    assert f"is one folder for {len(files)} studies" in str(result.exception or result.output)
    assert not (tmp_path / "runs").exists()
