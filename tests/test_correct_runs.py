"""A correct mechanism is hardly ever called a violation, and a broken one by the same code is.

``make bench`` makes 1,000 runs of it.
"""

from pathlib import Path

import pytest

from benchmarks import correct_runs
from privkit.defenses.faults.low_noise import LowNoise
from privkit.defenses.faulty_igpp import FaultyIgpp
from privkit.defenses.igpp import Igpp
from reports.findings import Verdict

RUNS = 300


@pytest.mark.slow
def test_a_correct_mechanism_is_flagged_in_at_most_one_run_of_a_hundred() -> None:
    share, said = correct_runs.violations(RUNS)
    assert share <= 0.01, said


@pytest.mark.parametrize("name", correct_runs.DEFENSES)
def test_what_the_runs_are_judged_by_is_an_audit_with_nothing_missing(tmp_path: Path, name: str) -> None:
    """Sixty tests and more stand behind every verdict: all attacks, and every check that such a run allows."""
    asked = correct_runs.planned(tmp_path / "run", correct_runs.DEFENSES[name])
    made = set(
        correct_runs.tested(asked, correct_runs.released(asked, correct_runs.DEFENSES[name], 0)).p_values
    )
    assert {
        "antipodal/AUC",
        "antipodal/TPR",
        "antipodal/AUC of client 1",
        "cosine/AUC",
        "likelihood_ratio/AUC",
    } <= made
    assert {"noise", "noise of round 2", "noise shared by rounds", "noise shared by clients", "clip"} <= made
    assert ("counts" in made) == (name != "sumcount")
    assert ("noise of the counts" in made) == (name == "sumcount")
    assert ("choice of groups" in made) == name.startswith("vpp")


def test_a_broken_mechanism_is_called_one_by_the_same_code(tmp_path: Path) -> None:
    broken = FaultyIgpp(claims=Igpp(epsilon=2.0), fault=LowNoise(factor=0.5))
    asked = correct_runs.planned(tmp_path / "run", broken)
    found = [correct_runs.verdict(asked, correct_runs.released(asked, broken, seed)) for seed in range(5)]
    assert found == [Verdict.VIOLATION] * 5
