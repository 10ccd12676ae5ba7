import json
import math
import re
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from accountant import subsampled
from accountant.comparison import calibrations
from accountant.gaussian import epsilon_from_mu, sigma_from_epsilon
from accountant.groupwise import Allocation
from accountant.rounded import rounded_up
from accountant.target import AbstractTarget, Advantage, Auc, EpsilonDelta, Mu, TprAtFpr, sigma_for
from accountant.tradeoff import GaussianCurve
from accountant.vpp_comparison import vpp_calibrations
from privkit.cli.calibrate import app

SIGMA = 26.379549270874083  # epsilon 1, delta 1e-5, 50 rounds, to 17 digits
BUDGET = ("--epsilon", "1", "--delta", "1e-5", "--rounds", "50")
SIGMA_REF = 26.416335704678840  # of VPP for the same budget, r = 0.1
VPP = (*BUDGET, "--dim", "512", "--rho", "0.1", "--split", "0.1")
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
        assert rounded_up(row.sigma) in line
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


TARGETS = [
    (("--mu", "0.5"), Mu(largest=0.5)),
    (("--advantage", "1e-6"), Advantage(advantage=1e-6)),
    (("--auc", "0.6"), Auc(auc=0.6)),
    (("--tpr", "0.999999", "--fpr", "1e-6"), TprAtFpr(tpr=0.999999, fpr=1e-6)),
]


@pytest.mark.parametrize(("words", "target"), TARGETS)
def test_noise_for_any_target_and_all_that_it_means(words: tuple[str, ...], target: AbstractTarget) -> None:
    found = json.loads(shell("gaussian", *words, "--rounds", "20", "--delta", "1e-6", "--json").stdout)
    assert found["sigma"] == sigma_for(target, rounds=20)
    mu = math.sqrt(20) / found["sigma"]
    curve = GaussianCurve(mu=mu)
    assert found["target"] == vars(target)
    assert (found["mu"], found["advantage"], found["auc"]) == (mu, curve.advantage, curve.auc)
    assert found["tpr_at_fpr"] == {"0.01": curve.tpr(0.01), "0.001": curve.tpr(0.001)}
    assert (found["epsilon"], found["delta"]) == (epsilon_from_mu(mu=mu, delta=1e-6), 1e-6)
    assert (found["method"], found["relation"]) == ("exact", "replace one record, same label")


@pytest.mark.parametrize(
    ("words", "target"), [*TARGETS, (("--epsilon", "1"), EpsilonDelta(epsilon=1.0, delta=1e-5))]
)
def test_rounds_that_a_noise_level_allows(words: tuple[str, ...], target: AbstractTarget) -> None:
    sigma = sigma_for(target, rounds=7) * 1.01
    found = json.loads(shell("gaussian", *words, "--sigma", repr(sigma), "--json").stdout)
    assert (found["rounds"], found["sigma"]) == (7, sigma)
    out = shell("gaussian", *words, "--sigma", repr(sigma)).stdout
    assert out.startswith(f"7 releases with sigma {sigma:g}; one more would exceed the target\n")


def test_noise_is_printed_rounded_up_with_its_meaning_in_every_unit() -> None:
    out = shell("gaussian", "--mu", "0.26805112", "--rounds", "50").stdout
    first, *table = out.splitlines()
    assert first == "sigma 26.3796 for 50 releases"  # 26.37955 to the nearest digit misses the target
    assert [line.split("│")[1:3] for line in table if line.startswith("│")] == [
        [" mu                             ", "   0.268051 "],
        [" epsilon at delta 1e-05         ", "          1 "],
        [" largest advantage of an attack ", "   0.106618 "],
        [" largest AUC                    ", "   0.575165 "],
        [" largest TPR at 1 % FPR         ", "  0.0197808 "],
        [" largest TPR at 0.1 % FPR       ", " 0.00238491 "],
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            (),
            "none given as target; give exactly one of --epsilon, --mu, --advantage, --tpr with --fpr, --auc.",
        ),
        (
            ("--epsilon", "1", "--auc", "0.6"),
            "--epsilon and --auc given as target; give exactly one of "
            "--epsilon, --mu, --advantage, --tpr with --fpr, --auc.",
        ),
        (("--tpr", "0.1"), "--tpr and --fpr belong together; give both."),
        (("--mu", "1", "--fpr", "0.1"), "--tpr and --fpr belong together; give both."),
        (("--tpr", "0.1", "--fpr", "0"), "fpr=0.0 must lie strictly between 0 and 1."),
        (("--tpr", "0.1", "--fpr", "0.2"), "tpr=0.1 must be above fpr=0.2, which a guess reaches."),
        (("--advantage", "1"), "advantage=1.0 must lie strictly between 0 and 1."),
        (("--mu", "1", "--delta", "0"), "delta=0.0 must lie strictly between 0 and 1."),
        (
            ("--mu", "1", "--sigma", "3", "--rounds", "5"),
            "--sigma 3 and --rounds 5 leave nothing to solve for; give one of them.",
        ),
        (("--mu", "1", "--sigma", "0"), "sigma=0.0 must be finite and above 0."),
        (
            ("--mu", "1", "--sigma", "0.25"),
            "sigma=0.25 does not keep the target even once; one release needs 1.00001.",
        ),
        (("--mu", "1", "--pld"), "--pld compares methods for --epsilon with --rounds; leave it out here."),
    ],
)
def test_a_target_that_is_none_or_two_is_refused(words: tuple[str, ...], sentence: str) -> None:
    found = shell("gaussian", *words)
    assert isinstance(found.exception, ValueError)
    assert str(found.exception) == sentence


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("gaussian", "--mu", "1e300"), "no float holds its epsilon"),
        (("gaussian", "--mu", "1e-320"), "needs more noise than a float holds"),
        (("gaussian", "--epsilon", "1e300"), "too large to compare"),
        (("gaussian", "--epsilon", "1e308"), "too large to compare"),
        (("gaussian", "--epsilon", "1", "--sigma", "1e300"), "more than 2\\^53 rounds"),
        (("dpsgd", "--epsilon", "1e308", "--sampling-rate", "0.1"), "too large to compare"),
        (("vpp", "--epsilon", "1e300", "--dim", "512", "--optimise"), "too large to compare"),
        (("vpp", "--epsilon", "1", "--dim", "100000000", "--optimise"), "--dim 100000000 is more than"),
    ],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_no_float_holds_is_refused(words: tuple[str, ...], match: str, form: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=match):
        CliRunner().invoke(app, [*words, *form], catch_exceptions=False)


def test_a_tiny_epsilon_keeps_the_tables_narrow() -> None:
    words = ("gaussian", "--epsilon", "1e-300")
    out = CliRunner().invoke(app, list(words), env={"COLUMNS": "80"}).stdout
    assert re.search(r"c1 = 1 +│ 3.39308e\+300 │ +\+8.51e\+297 % │", out)


DPSGD = ("dpsgd", "--sampling-rate", "0.02", "--rounds", "300", "--epsilon", "2", "--delta", "1e-5")


def test_dpsgd_noise_keeps_the_budget_and_hardly_less_does_not() -> None:
    pytest.importorskip("dp_accounting")
    found = json.loads(shell(*DPSGD, "--json").stdout)
    assert found["spent"] <= 2.0
    assert (found["sampling_rate"], found["steps"], found["delta"]) == (0.02, 300, 1e-5)
    assert found["relation"] == "add or remove one record"
    setting = {"sampling_rate": 0.02, "steps": 300, "delta": 1e-5}
    assert subsampled.epsilon(noise_multiplier=0.999 * found["sigma"], **setting).epsilon > 2.0
    assert found["sigma_without_sampling"] == sigma_from_epsilon(epsilon=2.0, delta=1e-5, rounds=300)
    out = shell(*DPSGD).stdout
    assert re.search(r"^sigma ([\d.]+) for 300 steps on samples of rate 0.02\n", out)
    assert "add or remove one record" in out


def test_dpsgd_without_sampling_is_gaussian_noise() -> None:
    out = shell("dpsgd", "--sampling-rate", "1", "--steps", "50", "--epsilon", "1").stdout
    assert out.splitlines() == [
        "sigma 26.3796 for 50 steps on samples of rate 1",
        "epsilon 1 at delta 1e-05, add or remove one record, exact",
        "sigma 26.3796 if the samples were not secret",
    ]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (("--sampling-rate", "1.5"), "sampling_rate=1.5 "),
        (("--epsilon", "0"), "epsilon=0.0 "),
        (("--steps", "0"), "0 "),
    ],
)
def test_bad_dpsgd_input_is_one_sentence(words: tuple[str, ...], match: str) -> None:
    found = shell(*DPSGD, *words)
    assert isinstance(found.exception, ValueError)
    assert match in str(found.exception)


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


def test_vpp_json_holds_the_joint_sigma_and_all_that_a_run_needs() -> None:
    found = json.loads(shell("vpp", *VPP, "--json").stdout)
    assert SIGMA_REF <= found["sigma"] <= SIGMA_REF * (1 + 1e-8)
    assert found["sigma_ref"] == found["sigma"]
    allocation = Allocation.of(dim=512, rho=0.1)
    assert (found["sigma_A"], found["sigma_B"]) == allocation.multipliers(found["sigma"])
    assert (found["dim"], found["k"], found["rho"], found["split"]) == (512, 52, 0.1, 0.1)
    assert (found["epsilon"], found["delta"], found["rounds"]) == (1.0, 1e-5, 50)
    assert (tuple(found["kappas"]), tuple(found["weights"])) == (allocation.kappas, allocation.weights)
    assert found["lambda_over_score_bound"] == pytest.approx(52_000, rel=1e-15)
    assert found["lambda"] == pytest.approx(5_200, rel=1e-15)
    assert (found["epsilon1"], found["epsilon2"]) == (0.1, 0.9)
    assert found["epsilon_per_round_selection"] == 0.002
    assert found["noise_vs_isotropic"] == pytest.approx({"A": 0.368, "B": 1.890, "energy": 3.222}, abs=1e-3)
    assert (found["method"], found["bound"]) == ("joint", "upper bound")
    assert found["relation"] == "replace one record, same label"
    assert found["unit"] == "one record of one client"


def test_vpp_json_says_that_the_selection_is_chance_and_what_each_method_wastes() -> None:
    found = json.loads(shell("vpp", *VPP, "--json").stdout)
    fidelity = found["fidelity"]
    assert fidelity["chance"] == 52 / 512
    assert 0 < fidelity["expected_overlap"] - fidelity["chance"] < 1e-5
    assert fidelity["note"] == "at most 0.1016, by chance 0.1016: the private selection is a coin toss"
    rows = {row["method"]: row for row in found["methods"]}
    assert rows["joint"]["sigma_ref"] == found["sigma"]
    assert rows["split, exact"]["excess_percent"] == pytest.approx(9.9, abs=0.05)
    assert rows["split, RDP as VPDR coded it"]["true_epsilon"] == pytest.approx(0.66260, abs=1e-5)
    assert all(row["note"] and row["valid"] for row in rows.values())
    rows = json.loads(shell("vpp", *VPP, "--json", "--epsilon", "8").stdout)["methods"]
    assert [row["method"] for row in rows if not row["valid"]] == ["split, formula, c1 = 1"]


def test_the_score_bound_only_scales_lambda() -> None:
    one, other = (json.loads(shell("vpp", *VPP, "--json", "--score-bound", h).stdout) for h in ("0.1", "0.5"))
    assert other["lambda"] == pytest.approx(5 * one["lambda"], rel=1e-15)
    for name in ("sigma", "lambda_over_score_bound", "fidelity", "noise_vs_isotropic"):
        assert other[name] == one[name]


def test_the_vpp_table_fits_eighty_columns_and_says_what_the_selection_is_worth() -> None:
    words = (*VPP, "--epsilon", "8")
    out = CliRunner().invoke(app, ["vpp", *words], env={"COLUMNS": "80"}).stdout
    allocation = Allocation.of(dim=512, rho=0.1)
    rows = vpp_calibrations(epsilon=8.0, delta=1e-5, rounds=50, split=0.1, allocation=allocation, scale=650.0)
    for row in rows:
        line = next(line for line in out.splitlines() if line.startswith(f" {row.reference.method} "))
        assert row.reference.sigma is not None
        assert rounded_up(row.reference.sigma, digits=5) in line
        assert len(line) <= 80
        assert f"{row.reference.method}: {row.note}" in out
    assert "selection: 52 of 512 coordinates, Laplace noise of scale 650\n" in out
    assert (
        "expected overlap with the true top-52: at most 0.1016, by chance 0.1016: "
        "the private selection is a coin toss\n"
    ) in out
    assert "noise against isotropic with sigma_ref: 0.368 on A, 1.890 on B, 3.222 in energy\n" in out


def test_a_selection_that_works_is_not_called_a_coin_toss() -> None:
    words = ("--epsilon", "8000", "--delta", "1e-5", "--dim", "512", "--rho", "0.1", "--split", "0.1")
    out = shell("vpp", *words).stdout
    assert "coin toss" not in out
    assert "of the way to the true set" in out


def test_a_vpp_method_without_an_answer_says_why() -> None:
    out = shell("vpp", *VPP, "--epsilon", "0.02").stdout
    assert "n/a" in out
    assert "split, RDP as VPDR coded it: epsilon=0.018" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--split", "0"), "split=0.0 must lie strictly between 0 and 1."),
        (("--split", "1"), "split=1.0 must lie strictly between 0 and 1."),
        (("--split", "nan"), "split is NaN; give a number."),
        (
            ("--rho", "0.1", "--dim", "5"),
            "rho=0.1 of dim=5 is less than one coordinate; raise rho to at least 0.2.",
        ),
        (
            ("--rho", "0.5", "--dim", "1"),
            "dim=1 leaves no coordinate for one of the two groups; use at least 2.",
        ),
        (("--score-bound", "0"), "score_bound=0.0 must be finite and above 0."),
        (("--score-bound", "inf"), "score_bound=inf must be finite and above 0."),
        (("--epsilon", "0"), "epsilon=0.0 must be finite and above 0."),
        (("--epsilon", "nan"), "epsilon is NaN; give a number."),
        (("--delta", "0"), "delta=0.0 must lie strictly between 0 and 1."),
        (("--rounds", "0"), "rounds=0 must be a whole number of at least 1."),
        (("--rho", "nan"), "rho is NaN; give a number."),
    ],
)
def test_bad_vpp_input_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    found = shell("vpp", *VPP, *words)
    assert isinstance(found.exception, ValueError)
    assert str(found.exception) == sentence


def test_more_than_half_of_the_coordinates_is_refused_with_the_reason() -> None:
    found = shell("vpp", *VPP, "--rho", "0.51")
    assert "rho=0.51 must lie in (0, 0.5]" in str(found.exception)


def test_bad_vpp_input_ends_with_code_two() -> None:
    words = [sys.executable, "-m", "privkit", "calibrate", "vpp", *VPP, "--split", "1"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "privkit: split=1.0 must lie strictly between 0 and 1.\n"


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
        (
            "import privkit.cli.calibrate as c;"
            "from typer.testing import CliRunner;"
            f"assert CliRunner().invoke(c.app, ['vpp', *{VPP!r}]).exit_code == 0",
            tuple(name for name in HEAVY if name != "numpy"),
        ),
    ],
)
def test_nothing_heavy_is_loaded(code: str, forbidden: tuple[str, ...]) -> None:
    code = f"import sys; {code}; print(*sys.modules, sep='\\n')"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(re.findall(r"^[\w.]+$", out, flags=re.MULTILINE))
    assert not {name for name in loaded if name in forbidden or name.partition(".")[0] in forbidden}
