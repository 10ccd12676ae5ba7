"""Every fault of configs/faults through the command line: its audit exits 3, that of its correct twin 0."""

import json
import sys
from pathlib import Path

import pytest
import yaml

from privkit import plug
from privkit.cli import main
from privkit.study import load

FOLDER = Path(__file__).parents[1] / "configs" / "faults"
FAULTS = sorted(path.stem for path in FOLDER.glob("*.yaml") if not path.stem.endswith("-twin"))
ATTACKS = ",".join(name for where in ("membership", "canary") for name in plug.names(f"attacks.{where}"))
TRIALS = 1000

CAUGHT_BY = {
    "half-noise": {"noise", "antipodal/AUC"},
    "low-noise": {"noise"},
    "half-sensitivity": {"noise", "antipodal/AUC"},
    "no-clip": {"clip", "antipodal/AUC"},
    "coordinate-clip": {"clip", "antipodal/AUC"},
    "per-dimension": {"noise", "antipodal/AUC"},
    "client-count": {"noise", "antipodal/AUC"},
    "reused-noise": {"noise shared by rounds", "most alike messages", "one_round/AUC"},
    "part-reused-noise": {"noise shared by rounds", "most alike messages"},
    "shared-noise": {"noise shared by clients", "most alike messages"},
    "any-label": {"label_moving/AUC"},
    "count-leak": {"noise by count", "label_moving/AUC"},
    "one-ball": {"clip"},
}
"""Tests that must reject, with the clean vectors in hand."""
UNSEEN_WITHOUT_THEM = {"low-noise", "part-reused-noise", "shared-noise", "one-ball"}
"""Faults that no attack on these releases shows."""


def settings(name: str) -> dict:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def run(*arguments: object) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["privkit", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every fault, and every twin once: most faults have the same one."""
    folder = tmp_path_factory.mktemp("faults")
    cells = {name: settings(name) for name in [*FAULTS, *(twin(name) for name in FAULTS)]}
    (folder / "all.yaml").write_text(yaml.safe_dump({"cells": cells}), encoding="utf-8")
    assert run("train", folder / "all.yaml", "--out", folder / "runs") == 0
    return folder / "runs"


def twin(name: str) -> str:
    """Return the first twin that is configured as that of a fault is."""
    wanted = settings(f"{name}-twin")
    return next(f"{one}-twin" for one in FAULTS if settings(f"{one}-twin") == wanted)


def audited(cell: Path) -> tuple[int, dict]:
    code = run("audit", "--run", cell, "--attacks", ATTACKS)
    return code, json.loads((cell / "audit" / "partial" / "audit.json").read_text(encoding="utf-8"))


def rejected(found: dict) -> set[str]:
    return {
        name.partition("/")[2]
        for name, p in found["adjusted_p"].items()
        if p is not None and p <= found["family_wise_error"]
    }


def test_every_fault_has_a_twin_and_is_expected_to_be_caught() -> None:
    assert set(FAULTS) == set(CAUGHT_BY)
    assert {path.stem for path in FOLDER.glob("*-twin.yaml")} == {f"{name}-twin" for name in FAULTS}
    named = {settings(name)["defense"].get("fault", {}).get("name") for name in FAULTS}
    assert named - {None} == set(plug.names("privkit.defenses.faults"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_twin_differs_in_nothing_but_the_defense_and_so_few_trials_are_asked_for(name: str) -> None:
    fault, correct = settings(name), settings(f"{name}-twin")
    assert {key for key in fault if fault[key] != correct[key]} == {"defense"}
    assert not correct["defense"]["name"].startswith("faulty")
    config = load(FOLDER / f"{name}.yaml").cells[name]
    clients = len(config.data.load())
    for count in [config.canaries.count, *(kind.count for kind in config.other_canaries or ())]:
        assert clients * count <= TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_a_violation_by_the_tests_that_are_about_it(runs: Path, name: str) -> None:
    code, found = audited(runs / name / "seed-0")
    assert (code, found["verdict"]) == (3, "VIOLATION")
    assert CAUGHT_BY[name] <= rejected(found)
    shown = any(row["tightness_high"] is not None for row in found["attacks"])
    assert ("of the claimed mu" in found["cells"][0]["reasons"]) == shown


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({twin(name) for name in FAULTS}))
def test_a_correct_twin_is_ok(runs: Path, name: str) -> None:
    code, found = audited(runs / name / "seed-0")
    assert (code, found["verdict"]) == (0, "OK")
    assert rejected(found) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_without_the_clean_vectors_canaries_show_what_they_can(runs: Path, name: str) -> None:
    for clean in (runs / name / "seed-0" / "truth").glob("round-*"):
        clean.unlink()
    code, found = audited(runs / name / "seed-0")
    assert (code == 3) == (name not in UNSEEN_WITHOUT_THEM)
    assert not any("noise" in test or test == "clip" for test in rejected(found))
