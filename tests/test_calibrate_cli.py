import json
import re
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from accountant.comparison import calibrations
from accountant.gaussian import epsilon_from_mu, sigma_from_epsilon
from privkit.cli.calibrate import app

SIGMA = 26.379549270874083  # epsilon 1, delta 1e-5, 50 rounds, to 17 digits
BUDGET = ("--epsilon", "1", "--delta", "1e-5", "--rounds", "50")
HEAVY = (
    "torch",
    "pandas",
    "sklearn",
    "matplotlib",
    "dp_accounting",
    "scipy.stats",
    "scipy.optimize",
    "numpy",
    "pydantic",
)


def shell(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("name", ["gaussian", "igpp"])
def test_json_holds_the_exact_sigma_and_every_method(name: str) -> None:
    found = json.loads(shell(name, *BUDGET, "--json").stdout)
    assert SIGMA <= found["sigma"] <= SIGMA * (1 + 1e-9)
    assert (found["epsilon"], found["delta"], found["rounds"]) == (1.0, 1e-5, 50)
    assert (found["method"], found["bound"]) == ("exact", "exact")
    assert found["relation"] == "replace one record, same label"
    assert found["unit"] == "one record of one client"
    rows = {row["method"]: row for row in found["methods"]}
    assert rows["exact"]["sigma"] == found["sigma"]
    assert rows["RDP, best conversion"]["excess_percent"] == pytest.approx(8.43, abs=0.005)
    assert rows["RDP as VPDR coded it"]["sigma"] == pytest.approx(34.66, abs=0.005)
    assert rows["VPDR's formula, c1 = 1"]["true_epsilon"] == pytest.approx(1.110, abs=5e-4)
    assert rows["VPDR's formula, c1 = 1"]["valid"] is False
    assert rows["VPDR's formula, c1 = sqrt 2"]["valid"] is True


def test_the_table_shows_every_method_on_one_line_each() -> None:
    out = shell("gaussian", *BUDGET).stdout
    for row in calibrations(epsilon=1.0, delta=1e-5, rounds=50):
        assert row.sigma is not None
        line = next(line for line in out.splitlines() if line.startswith(f"│ {row.method} "))
        assert f"{row.sigma:.6g}" in line
        assert ("NO" in line) == (not row.valid)


def test_one_release_is_the_default() -> None:
    found = json.loads(shell("gaussian", "--epsilon", "2", "--delta", "1e-6", "--json").stdout)
    assert found["rounds"] == 1
    assert found["sigma"] == sigma_from_epsilon(epsilon=2.0, delta=1e-6)


def test_a_method_without_an_answer_says_why() -> None:
    out = shell("gaussian", "--epsilon", "0.003", "--delta", "1e-5").stdout
    assert "n/a" in out
    assert "RDP as VPDR coded it: epsilon=0.003 at delta=1e-05 is out of reach" in out
    rows = json.loads(shell("gaussian", "--epsilon", "0.003", "--delta", "1e-5", "--json").stdout)["methods"]
    coded = next(row for row in rows if row["method"] == "RDP as VPDR coded it")
    assert coded["sigma"] is None
    assert "out of reach" in coded["reason"]


def test_pld_agrees_when_it_is_asked() -> None:
    pytest.importorskip("dp_accounting")
    rows = json.loads(shell("gaussian", *BUDGET, "--json", "--pld").stdout)["methods"]
    assert rows[-1]["method"] == "PLD, dp-accounting"
    assert rows[-1]["sigma"] == pytest.approx(SIGMA, rel=1e-6)
    assert rows[-1]["valid"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--epsilon", "nan", "--delta", "1e-5"), "epsilon is NaN; give a number."),
        (("--epsilon", "0", "--delta", "1e-5"), "epsilon=0.0 must be finite and above 0."),
        (("--epsilon", "inf", "--delta", "1e-5"), "epsilon=inf must be finite and above 0."),
        (("--epsilon", "1", "--delta", "0"), "delta=0.0 must lie strictly between 0 and 1."),
        (("--epsilon", "1", "--delta", "1"), "delta=1.0 must lie strictly between 0 and 1."),
        (
            ("--epsilon", "1", "--delta", "1e-5", "--rounds", "0"),
            "rounds=0 must be a whole number of at least 1.",
        ),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    found = shell("gaussian", *words)
    assert isinstance(found.exception, ValueError)
    assert str(found.exception) == sentence


def test_a_fraction_of_a_round_is_bad_usage() -> None:
    assert shell("gaussian", "--epsilon", "1", "--delta", "1e-5", "--rounds", "2.5").exit_code == 2


@pytest.mark.parametrize("epsilon", [1e-4, 0.5, 20.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.4])
def test_every_row_tells_the_truth_about_itself(epsilon: float, delta: float) -> None:
    exact, *others = calibrations(epsilon=epsilon, delta=delta, rounds=7)
    assert exact.sigma is not None
    assert exact.valid
    for row in others:
        if row.sigma is None:
            continue
        assert row.true_epsilon == epsilon_from_mu(mu=7**0.5 / row.sigma, delta=delta)
        assert row.valid == (row.sigma >= exact.sigma * (1 - 1e-12))
        assert row.excess_percent == pytest.approx(100 * (row.sigma / exact.sigma - 1))


@pytest.mark.parametrize(
    ("code", "forbidden"),
    [
        ("import accountant", (*HEAVY, "scipy", "jaxtyping", "typer")),
        (
            "import accountant.gaussian, privkit.cli.calibrate as c;"
            "from typer.testing import CliRunner;"
            "assert CliRunner().invoke(c.app, 'igpp --epsilon 1 --delta 1e-5'.split()).exit_code == 0",
            (*HEAVY, "scipy"),
        ),
    ],
)
def test_nothing_heavy_is_loaded(code: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys; {code}; print(*sys.modules, sep='\\n')"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(re.findall(r"^[\w.]+$", out, flags=re.MULTILINE))
    assert not {name for name in loaded if name in forbidden or name.partition(".")[0] in forbidden}
