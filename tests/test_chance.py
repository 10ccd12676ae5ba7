"""What attacks without skill reach: laws held against a simulation, and the command that prints them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from attacks.statistics.auc import auc
from attacks.statistics.best_f1 import best_f1
from attacks.statistics.chance import chance
from attacks.statistics.tpr import tpr_at_fpr
from privkit.cli.app import app

RUNS = 2000


def reached(m: int, n: int, fpr: str, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """Return AUC, TPR, best balanced accuracy and best F1 of one score that knows nothing."""
    members, others = rng.standard_normal(m), rng.standard_normal(n)
    cuts = np.concatenate([members, others])
    hits, false = ((one >= cuts[:, None]).mean(1) for one in (members, others))
    tpr, f1 = tpr_at_fpr(members, others, fpr=fpr).estimate.value, best_f1(members, others).value
    assert tpr is not None
    assert f1 is not None
    area = float((members[:, None] > others).mean())
    return area, tpr, float(0.5 + max(0.0, (hits - false).max()) / 2), f1


@pytest.mark.parametrize(("m", "n", "attacks"), [(12, 10, 1), (12, 10, 5), (9, 14, 3)])
def test_means_and_limits_are_those_of_a_simulation(m, n, attacks):
    rng, expected = np.random.default_rng(m + attacks), chance(m, n, fpr="0.1", attacks=attacks)
    found = np.array([reached(m, n, "0.1", rng) for _ in range(RUNS)])
    deviation = 4 * found.std(0) / RUNS**0.5
    means = np.array([0.5, expected.tpr, expected.balanced_accuracy, expected.f1])
    assert (np.abs(found.mean(0) - means) <= deviation).all()
    best = found[: RUNS // attacks * attacks].reshape(-1, attacks, 4).max(1)
    limits = np.array([expected.auc_limit, expected.tpr_limit, expected.balanced_accuracy_limit])
    often = 0.05 + 4 * (0.05 * 0.95 / len(best)) ** 0.5
    assert ((best[:, :3] > limits + 1e-9).mean(0) <= often).all()
    lower = limits - np.array([0.05, 1 / m, 1 / (m * n)])  # the next smaller value, or about
    assert ((best[:, :3] > lower - 1e-9).mean(0) > 0.05).all()


def test_a_rate_that_so_few_non_members_cannot_show_has_no_number():
    found = chance(50, 99)
    assert (found.tpr, found.tpr_limit) == (None, None)
    assert chance(50, 100).tpr == 2 / 101


def test_one_member_and_one_non_member_can_reach_anything():
    assert auc([1.0], [0.0]).value == chance(1, 1).auc_limit == chance(1, 1).balanced_accuracy_limit == 1.0


@pytest.mark.parametrize(
    "wrong", [{"n_members": 0}, {"n_non_members": -1}, {"attacks": 0}, {"level": 1.0}, {"fpr": 5}]
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=str(next(iter(wrong.values())))):
        chance(**({"n_members": 4, "n_non_members": 4} | wrong))


def test_the_command_prints_a_row_per_size():
    said = CliRunner().invoke(app, ["chance", "--cells", "100x100, 20x30", "--attacks", "8"]).output
    assert "the best of 8 independent attacks exceeds" in " ".join(said.split())
    found = json.loads(CliRunner().invoke(app, ["chance", "--cells", "100x100,20x30", "--json"]).output)[
        "rows"
    ]
    assert [(row["n_members"], row["n_non_members"]) for row in found] == [(100, 100), (20, 30)]
    assert found[0]["auc_limit"] == chance(100, 100).auc_limit


@pytest.mark.parametrize("cells", ["100", "100x", "0x3", "axb", "1.5x3", "-3x3"])
def test_what_is_no_size_is_refused(cells):
    with pytest.raises(
        ValueError, match=f"'{cells}' is no number of candidates; write members x non-members"
    ):
        CliRunner().invoke(app, ["chance", f"--cells={cells}"], catch_exceptions=False)
