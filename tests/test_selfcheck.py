"""The self-check passes what is right, fails what is wrong, and does not run what it does not understand."""

import json
import math
from pathlib import Path
from typing import Any

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mp

from accountant import gaussian, zcdp
from accountant.selfcheck import case as accounting
from accountant.selfcheck import registry
from accountant.selfcheck.attained import attained_log_ratio
from accountant.selfcheck.case import Case
from accountant.selfcheck.judge import answer, judge
from accountant.selfcheck.numbers import NotANumberError, grid, number, whole
from accountant.selfcheck.outcome import Status
from accountant.selfcheck.privacy import NotUnderstoodError
from accountant.selfcheck.tolerance import Tolerance, UnknownToleranceError, parse
from privkit.selfcheck import audit_case
from privkit.selfcheck import judge as audit
from privkit.selfcheck.run import SHIPPED, outcomes, read

CASES = read(SHIPPED)
ACCOUNTING = {case.name: case for case in CASES.accounting}
AUDIT = {plain["id"]: plain for plain in json.loads(audit_case.SHIPPED.read_text("utf-8"))["cases"]}


def made(kind: str, params: dict[str, Any], value: Any = "1", tolerance: str = "rel 1e-9") -> Case:
    return Case(name="made up", kind=kind, params=params, value=str(value), tolerance=tolerance)


@pytest.mark.parametrize("name", ACCOUNTING)
def test_a_shipped_accounting_case_passes(name: str) -> None:
    found = judge(ACCOUNTING[name])
    assert (found.status, found.reason) == (Status.PASSED, "")


@pytest.mark.parametrize("name", AUDIT)
def test_a_shipped_audit_case_passes(name: str) -> None:
    found = audit.judge(audit_case.from_plain(AUDIT[name], where=name))
    assert (found.status, found.reason) == (Status.PASSED, "")


def test_nothing_shipped_is_left_out() -> None:
    assert (len(CASES.accounting), len(CASES.audit)) == (68, 28)
    assert len(outcomes(CASES)) == 96


@pytest.mark.parametrize("name", [name for name, case in ACCOUNTING.items() if case.kind != "must_raise"])
def test_a_wrong_value_fails(name: str) -> None:
    case = ACCOUNTING[name]
    wrong = " -> ".join(str(float(part) * 1.01 + 0.01) for part in case.value.split("->"))
    plain = {**vars(case), "value": wrong}
    assert judge(Case(**plain)).status is Status.FAILED


def moved(value: Any) -> Any:
    """Every number a little further away, every truth turned round."""
    if isinstance(value, list):
        return [moved(each) for each in value]
    if isinstance(value, dict):
        return {key: moved(each) for key, each in value.items()}
    if isinstance(value, bool):
        return not value
    return value * 1.5 + 3 if isinstance(value, int | float) else value


@pytest.mark.parametrize("name", AUDIT)
def test_a_wrong_audit_value_fails(name: str) -> None:
    plain = AUDIT[name]
    if name == "single_class":
        wrong = {**plain["expected"], "auc": 0.0}
    elif name == "canary_certified_eps":
        wrong = {"rows": [{**row, "gdp_cp": row["gdp_cp"] + 9} for row in plain["expected"]["rows"]]}
    elif "rows" in plain["expected"]:
        wrong = {"rows": [[*row[:-1], moved(row[-1])] for row in plain["expected"]["rows"]]}
    else:
        wrong = moved(plain["expected"])
    found = audit.judge(audit_case.from_plain({**plain, "expected": wrong}, where=name))
    assert found.status is Status.FAILED


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("1e-9", Tolerance(absolute=1e-9)),
        ("0.001", Tolerance(absolute=0.001)),
        ("abs 1e-6", Tolerance(absolute=1e-6)),
        ("rel 1e-9", Tolerance(relative=1e-9)),
        ("relative 1E-9", Tolerance(relative=1e-9)),
        ("exact", Tolerance(relative=1e-12)),
        ("-", Tolerance(relative=1e-12)),
        ("rel 1e-8; must satisfy sigma>=value (safe side)", Tolerance(relative=1e-8, at_least=True)),
        ("1e-8; must satisfy mu<=value", Tolerance(absolute=1e-8, at_most=True)),
    ],
)
def test_a_tolerance_is_read(words: str, wanted: Tolerance) -> None:
    assert parse(words) == wanted


@pytest.mark.parametrize("words", ["close", "rel", "rel -1", "rel 1e400", "1e999", "rel 1e-8; on a good day"])
def test_an_unknown_tolerance_is_not_run(words: str) -> None:
    with pytest.raises(UnknownToleranceError, match="tolerance"):
        parse(words)
    assert judge(made("rho", {"eta": 1.0}, tolerance=words)).status is Status.NOT_RUN


@pytest.mark.parametrize("value", [None, True, "a lot", {"low": 1}])
def test_a_value_that_is_no_number_is_not_run(value: Any) -> None:
    plain = {"case": "one", "kind": "rho", "params": {"eta": 1.0}, "value": value, "tolerance": "exact"}
    found = judge(accounting.from_plain(plain, where="it"))
    assert (found.status, "not understood" in found.reason) == (Status.NOT_RUN, True)


def test_the_safe_side_is_decided_beyond_float64() -> None:
    at_least = Tolerance(relative=1e-8, at_least=True)
    assert at_least.agrees(2.0, "1.99999999999999999999")
    assert not at_least.agrees(2.0, "2.00000000000000000001")
    assert Tolerance(relative=1e-8, at_most=True).agrees(2.0, "2.00000000000000000001")
    assert Tolerance().agrees(math.inf, "inf")
    assert not Tolerance(absolute=1.0).agrees(math.nan, "1.0")
    assert not Tolerance(absolute=1.0).agrees(1.0, "nan")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1e-5", 1e-5),
        (3, 3.0),
        ("inf", math.inf),
        ("sqrt2", math.sqrt(2)),
        ("sqrt(2)", math.sqrt(2)),
        ("ln3", math.log(3)),
        ("1/500", 0.002),
        ("2*sqrt(2)", 2 * math.sqrt(2)),
        ("mu(8,1e-5)", 1.6660305978),
    ],
)
def test_a_number_is_read(text: Any, wanted: float) -> None:
    assert number(text) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("text", ["many", "", "1/0", "sqrt(-1)", "ln0", None, True, [1]])
def test_what_is_no_number_is_refused(text: Any) -> None:
    with pytest.raises(NotANumberError, match="not a number"):
        number(text)
    with pytest.raises(NotANumberError, match="not a"):
        whole(0.5)


def test_orders_are_read_as_the_authors_of_vpdr_search_them() -> None:
    from accountant.rdp import VPDR_ORDERS

    assert grid("1.1..10.9 step .1, 11..63, 128,256,512") == VPDR_ORDERS
    assert grid([2, "4"]) == (2.0, 4.0)


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("perplexity", {"sigma": 1.0}),
        ("epsilon", {"sigma": 1.0, "T": 1, "delta": 1e-5, "surprise": 3}),
        ("epsilon", {"mechanism": "staircase", "eps0": 1.0, "delta": 1e-5}),
        ("epsilon", {"sigma": "large", "T": 1, "delta": 1e-5}),
        ("epsilon", {"sigma": 1.0, "T": 1.5, "delta": 1e-5}),
        ("epsilon", {"sigma": 1.0, "delta": 1e-5, "relation": "second cousins"}),
        ("delta", {"mechanism": "bounded range", "eta": 1.0, "epsilon": 1.0}),
        ("sigma", {"epsilon": 1.0, "delta": 1e-5, "T": 1, "conversion": "by prayer"}),
        ("mahalanobis_factor", {"points": {"D1": {}}, "K": 2}),
        ("score_pair", {"classes": {"0": "2x(1)"}, "zeta": 1.0, "replaced": "nothing"}),
        ("must_raise", {"colour": "nan"}),
        (
            "score_pair",
            {"classes": {"0": "9999999999x(+1)"}, "zeta": 1.0, "replaced": "one class-0 value +1 -> -1"},
        ),
        ("mahalanobis_factor", {"points": {"D1": {"1": 10**10}, "D2": {"1": 10**10}}, "K": 1}),
        ("mahalanobis_factor", {"m": 10**10}),
        ("overlap", {"d": 10**8, "k": 10, "lambda": 1.0}),
        ("epsilon", {"sigma": 10**400, "delta": 1e-5}),
        ("epsilon", {"sigma": 1.0, "delta": 1e-5, "conversion": "classic", "alphas": "2..1e12"}),
        ("must_raise", {"sigma": "a little"}),
        ("tpr", {"mechanism": "laplace", "eps0": 1.0, "fpr": 0.1}),
    ],
)
def test_what_is_not_understood_is_not_run_and_says_why(kind: str, params: dict[str, Any]) -> None:
    found = judge(made(kind, params))
    assert found.status is Status.NOT_RUN
    assert found.reason


@pytest.mark.parametrize("value", ["nan", -1, 0, "inf", "-inf"])
def test_a_noise_that_is_none_is_refused_everywhere(value: Any) -> None:
    assert judge(made("must_raise", {"sigma": value}, "error", "-")).status is Status.PASSED


@pytest.mark.parametrize(
    "params",
    [
        {"sigma": 1.0, "delta": 0},
        {"sigma": 1.0, "q": 1.5},
        {"delta": -0.1},
        {"epsilon": -1.0},
        {"epsilon": "nan"},
        {"mu": "nan"},
        {"T": 0},
        {"rounds": 2.5},
        {"eps0": -1.0},
        {"eta": 0},
        {"fpr": 2.0},
        {"rho": "nan"},
        {"k": 9, "d": 8},
        {"order": 1},
        {"order": "nan"},
        {"orders": "inf"},
        {"orders": [2, "nan"]},
        {"orders": []},
        {"alpha": 1, "delta": 1e-5},
        {"alpha": "inf", "delta": 1e-5, "conversion": "classic"},
        {"alpha": 1.5, "mu": 1.0},
        {"c1": 0},
        {"c1": "nan", "epsilon": 1.0},
        {"r": 1.0},
        {"sigma_A": "nan", "sigma_B": 1.0},
        {"sigma_B": 0},
        {"sigma_ref": -1},
        {"advantage": 1.0},
        {"auc": 0.5},
        {"tpr": "nan"},
        {"tpr": 0.1, "fpr": 0.2},
        {"n_c": 0},
        {"n_c": 2.5, "other_class": 3},
        {"claimed_eps": 0},
        {"claimed_epsilon": 1.0, "claimed_delta": 1},
        {"beta": "nan"},
        {"mechanism": "gaussian", "sigma": "nan", "T": 1, "delta": 1e-5},
    ],
)
def test_other_numbers_that_are_none_are_refused_too(params: dict[str, Any]) -> None:
    found = judge(made("must_raise", params, "error", "-"))
    assert (found.status, found.found) == (Status.PASSED, "refused everywhere")


@pytest.mark.parametrize(
    "params", [{"alpha": 0.1}, {"alpha": 2, "delta": 1e-5}, {"tpr": 0.2}, {"orders": [2, 3]}]
)
def test_a_sound_alpha_is_let_through(params: dict[str, Any]) -> None:
    assert judge(made("must_raise", params, "error", "-")).found.count("gives") >= 1


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-6, 0.999), st.integers(1, 500))
def test_noise_for_a_target_is_on_the_safe_side(share: float, rounds: int) -> None:
    auc, tpr = (1 + share) / 2, (share + 1e-3) / 1.002
    assume(auc > 0.5)
    for params, mu in (
        ({"advantage": share}, math.sqrt(8) * mp.erfinv(mp.mpf(share))),
        ({"auc": auc}, 2 * mp.erfinv(2 * mp.mpf(auc) - 1)),
        ({"tpr": tpr, "fpr": 5e-4}, quantile(tpr) - quantile(5e-4)),
    ):
        (found,) = answer(made("sigma", {**params, "T": rounds}))
        least = mp.sqrt(rounds) / mu
        assert found >= least * (1 - mp.mpf(1e-25))
        assert found <= least * (1 + 1e-10)


def quantile(share: float) -> Any:
    return mp.sqrt(2) * mp.erfinv(2 * mp.mpf(share) - 1)


def test_a_sound_number_that_must_be_refused_fails() -> None:
    found = judge(made("must_raise", {"sigma": 2.0}, "error", "-"))
    assert found.status is Status.FAILED
    assert "gives" in found.found


def test_an_expected_refusal_of_another_kind() -> None:
    assert judge(made("epsilon", {"sigma": -1, "delta": 1e-5}, "error", "-")).status is Status.PASSED
    assert judge(made("epsilon", {"sigma": 1, "delta": 1e-5}, "error", "-")).status is Status.FAILED
    refused = judge(made("epsilon", {"sigma": -1, "delta": 1e-5}))
    assert (refused.status, refused.reason[:7]) == (Status.FAILED, "refused")


GAUSSIAN = gaussian.epsilon_from_mu(mu=0.5, delta=1e-5)
OTHERS: list[tuple[str, dict[str, Any], float]] = [
    ("epsilon", {"mu": 0.5, "delta": 1e-5}, GAUSSIAN),
    ("epsilon", {"noise_multiplier": 2.0, "steps": 1, "delta": "1e-5"}, GAUSSIAN),
    ("epsilon", {"sigma": 4.0, "T": 1, "relation": "replace_one", "delta": 1e-5}, GAUSSIAN),
    ("epsilon", {"sigma": 2.0, "T": 1, "adjacency": "add_or_remove", "delta": 1e-5}, GAUSSIAN),
    ("epsilon", {"sigma": 6.0, "copies": 3, "delta": 1e-5}, GAUSSIAN),
    ("epsilon", {"sigmas": [8, 4], "counts": [4, 3], "delta": 1e-5}, GAUSSIAN),
    ("epsilon", {"sigma": 2.0, "q": 1.0, "steps": 1, "delta": 1e-5}, GAUSSIAN),
    ("epsilon", {"sigma": 1.0, "T": 1, "adjacency": "REPLACE_ONE", "delta": 1e-5}, 9.99726),
    ("epsilon", {"sigma": 20.0, "T": 60, "delta": "1/500"}, 0.902940),
    ("epsilon", {"mechanism": "pure", "eps0": "ln3", "T": 100, "delta": 1e-5}, 90.7815),
    ("epsilon", {"sigma": 26.3795492709, "T": 50, "delta": 1e-5, "conversion": "classic"}, 1.3222),
    ("epsilon", {"mechanism": "bounded range", "eta": 0.05, "n": 52, "delta": 1e-5}, 0.7097),
    ("epsilon", {"mechanism": "bounded range", "eta": 0.02, "n": 52, "mu": 0.25, "delta": 1e-5}, 0.9909),
    ("epsilon", {"mechanism": "zCDP", "rho": 0.5, "delta": 1e-5}, zcdp.epsilon_from_rho(rho=0.5, delta=1e-5)),
    ("epsilon", {"eps0": 0.002, "sigma_A": 36.77, "sigma_B": 36.77, "T": 50, "delta": 1e-5}, 1.01754),
    ("epsilon", {"claimed_eps": 1.0, "delta": 1e-5, "n_a": "inf", "n_b": "inf"}, 1.46517),
    ("epsilon", {"claimed_eps": 8.0, "delta": 1e-5, "mu_factor": "sqrt2"}, 12.256),
    ("epsilon", {"claimed_eps": 1.0, "delta": 1e-5, "rho": 0.25}, 1.67),
    ("epsilon", {"c1": 1.0, "epsilon": 16.0, "delta": 1e-5}, 30.5),
    ("delta", {"c1": 1.0, "epsilon": 1.0, "delta": 1e-5}, 4.28435e-5),
    ("delta", {"claimed_eps": 1.0, "delta": 1e-5, "n_a": "inf", "n_b": "inf"}, 8.0e-4),
    ("delta", {"sigma": 1.0, "q": 0.00105, "T": 1, "epsilon": 0.0}, 4.02e-4),
    ("c1", {"epsilon": 8.0, "delta": 1e-5}, 1.4152),
    ("sigma", {"epsilon": 1.0, "delta": 1e-5, "T": 20, "c1": "sqrt2"}, 21.46),
    ("sigma", {"epsilon": 1.0, "delta": 1e-5, "T": 50, "r": 0.1, "accounting": "sequential"}, 29.038),
    ("sigma", {"epsilon": 1.0, "delta": 1e-5, "T": 50, "eps0": 0.002}, 26.4163),
    ("sigma", {"epsilon": 1.0, "delta": 1e-5, "T": 1, "conversion": "improved"}, 4.0451),
    ("sigma", {"advantage": 0.10661763845210110783}, 3.73063163),
    ("sigma", {"auc": 0.5751654966310309}, 3.73063163),
    ("sigma", {"tpr": 0.25452512288431939, "fpr": 0.01, "T": 20}, 2.684306),
    ("rho", {"mechanism": "gaussian", "sigma": 2.0, "T": 4}, 0.5),
    ("mu", {"mechanism": "laplace", "d": 1, "H": 1.0, "lam": 1.0}, 1.0327),
    ("mu", {"d": 512, "H": 1.0, "sigma_s": 1428.0}, 0.015846),
    ("mu", {"epsilon": 2.0, "delta": 1e-5}, 0.5016),
    ("rho", {"mechanism": "Gumbel", "k": 52, "H": 1.0, "beta": 40.0}, 0.016249),
    ("mu_factor", {"rho": 0.3}, 1.419),
    ("mu_factor", {"rho": 0.1, "d": 512}, 2.714),
    ("mu_factor", {"rho": 0.1}, 2.7386),
    (
        "mahalanobis_factor",
        {"points": {"D1": {-1: 9, 0: 11, 1: 10}, "D2": {-1: 10, 0: 11, 1: 9}}, "K": 2},
        6.149,
    ),
    ("delta_at_eps1", {"n": 100, "n_prime": 99, "d": 512, "T": 50, "epsilon": 1.0}, 0.602),
    ("delta_at_eps1", {"n": 1000, "n_prime": 999, "d_times_T": 25600, "epsilon": 1.0}, 5.1e-7),
    ("tv", {"n": 10, "n_prime": 9, "d_times_T": 512}, 0.9079536),
    ("sensitivity_ratio", {"n_c": 20, "other_class": 21, "encoder": "any words"}, 20.0),
    ("log_ratio_fraction", {"d": 2, "k": 1, "H": 1.0, "lam": 1000.0}, 0.5),
    ("log_ratio_fraction", {"d": 512, "k": 256, "H": 1.0, "lam": 256000.0}, 0.96475),
    ("log_ratio_fraction", {"d": 512, "k": 461, "H": 1.0, "lam": 461000.0}, 1.0),
    ("eps", {"d": 512, "k": 52, "H": 1.0, "lam": 52000.0, "monotone": True}, 0.001),
    ("lambda", {"k": 52, "H": 1.0, "T": 1, "eps": 1.0, "r": 0.1}, 1040.0),
    ("overlap", {"d": 512, "k": 52, "H": 1.0, "lam": 52000.0}, 0.101564),
    ("epsilon", {"history": [[1, 1, 50], [1000, 1, 1]], "delta": 1e-5}, 54.3766),
    ("epsilon", {"noise_parameter": 0.5, "num_buckets": 2, "count": 100, "delta": 1e-5}, 90.7815),
    ("epsilon", {"claimed_eps": 1.0, "delta": 1e-5, "m": 100}, 178.0),
    ("epsilon", {"sigma_ref": 26.0, "d": 512, "rho": 0.1, "T": 50, "delta": 1e-5}, 1.01604),
    ("epsilon", {"eps0": 0.1, "delta0": 1e-7, "T": 50, "delta": "6e-6"}, 3.1729),
    ("delta", {"eps0": 0.1, "delta0": 1e-3, "T": 50, "epsilon": 10.0}, 0.0487943),
    ("epsilon", {"sigma": 0.7, "q": 0.01, "T": 1000, "delta": 1e-5}, 4.62),
    ("epsilon", {"sigma": 1.0, "q": 0.00105, "T": 1, "delta": 1e-3}, 0.0),
    ("sigma", {"epsilon": 4.62, "delta": 1e-5, "q": 0.01, "T": 1000}, 0.7),
    ("advantage", {"mechanism": "laplace", "eps0": 1.0, "T": 1}, 0.393469),
    ("mu_factor", {"classes": 7, "n_c": 50}, 132.288),
    ("mu_factor", {"m": 3}, 3.0),
    ("mahalanobis_factor", {"m": 1000}, 559.6),
    ("bayes_error", {"mu": 1.0}, 0.3085),
    ("tpr", {"mu": "mu(1,1e-5)", "fpr": 0.01}, 0.01978),
    ("auc", {"sigma": 2.0, "T": 1}, 0.638163),
]


@pytest.mark.parametrize(("kind", "params", "value"), OTHERS, ids=str)
def test_other_parameters_give_what_the_analysis_says(
    kind: str, params: dict[str, Any], value: float
) -> None:
    """Values of the written analysis to the digits that it prints, and of other accountants."""
    found = judge(made(kind, params, value, "rel 6e-3"))
    assert (found.status, found.reason) == (Status.PASSED, "")


def test_every_kind_of_the_shipped_cases_has_a_law() -> None:
    assert {case.kind for case in CASES.accounting} <= {*registry.kinds(), "must_raise"}
    with pytest.raises(NotUnderstoodError, match="perplexity"):
        registry.question("perplexity", {})


def test_the_attained_ratio_of_two_coordinates_is_a_plain_probability() -> None:
    """One of two is chosen wrongly if the difference of two Laplace variables exceeds their distance."""
    shift = 0.7
    wrong = math.exp(-shift) * (2 + shift) / 4
    assert attained_log_ratio(dim=2, k=1, shift=shift) == pytest.approx(
        math.log((1 - wrong) / wrong), rel=1e-11
    )


def test_the_attained_ratio_of_many_coordinates_agrees_with_30_digits() -> None:
    d, k, shift = 64, 7, 1 / 500

    def chance(inside: float, outside: float) -> Any:
        def survival(y):
            return mp.exp(-y) / 2 if y >= 0 else 1 - mp.exp(y) / 2

        def smallest(y):
            density = mp.exp(-abs(y - inside)) / 2
            return k * density * survival(y - inside) ** (k - 1) * survival(outside - y) ** (d - k)

        return mpmath.quad(smallest, [-40, -6, -2, 0, shift, 0.5, 1, 2, 3, 4, 6, 9, 14, 40])

    with mp.workdps(30):
        want = mp.log(chance(shift, 0) / chance(0, shift))
    assert attained_log_ratio(dim=d, k=k, shift=shift) == pytest.approx(float(want), rel=1e-11)


@pytest.mark.parametrize(
    "plain",
    [
        {"id": "new", "inputs": {}, "expected": {"shoe_size": 1}, "tol": 1e-9},
        {
            "id": "new",
            "inputs": {"member": [1], "nonmember": [0], "x": 1},
            "expected": {"auc": 1},
            "tol": 1e-9,
        },
        {"id": "new", "inputs": {}, "expected": {"rows": [[1] * 11]}, "tol": 1e-9},
        {"id": "new", "inputs": {"delta": 1e-5}, "expected": {"rows": [[1, 2, 3, 4, 5]]}, "tol": 1e-9},
        {"id": "new", "inputs": {}, "expected": {"rows": "many"}, "tol": 1e-9},
        {"id": "new", "inputs": {}, "expected": {}, "tol": 1e-9},
        {"id": "new", "inputs": {"member": "a few", "nonmember": [0]}, "expected": {"auc": 1}, "tol": 1e-9},
    ],
)
def test_an_audit_case_that_is_not_understood_is_not_run(plain: dict[str, Any]) -> None:
    found = audit.judge(audit_case.from_plain(plain, where="it"))
    assert found.status is Status.NOT_RUN
    assert found.reason


@pytest.mark.parametrize(
    "plain",
    [
        {
            "id": "auc_other",
            "inputs": {"member": [3, 1], "nonmember": [2, 0]},
            "expected": {"auc": 0.75},
            "tol": 0,
        },
        {
            "id": "fpr",
            "inputs": {"pairs": [[0.58, 100]]},
            "expected": {"k": [58], "naive_float_floor": [57]},
            "tol": 0,
        },
        {"id": "few", "inputs": {"conf": 0.95}, "expected": {"alpha_5pct": 59}, "tol": 0},
        {
            "id": "cp2",
            "inputs": {},
            "expected": {"rows": [[0, 10, 0, 0.30849711, 0, 0.25886555]]},
            "tol": 1e-8,
        },
        {"id": "best", "inputs": {"N": [100]}, "expected": {"eps": [3.28134635]}, "tol": 1e-8},
        {
            "id": "vpp_whitening_half",
            "inputs": {"rho": 0.5},
            "expected": {"mu_times_sigma_inner_product": 1.0},
            "tol": 1e-9,
        },
        {"id": "noise", "inputs": {}, "expected": {"rows": [[0.9, 1336]]}, "tol": 2},
        {
            "id": "gdp_roc",
            "inputs": {"eps": [8], "delta": 1e-5, "fpr": [0.01]},
            "expected": {"tpr": [[0.2545]]},
            "tol": 5e-5,
        },
        {
            "id": "gdp",
            "inputs": {"eps": [1, 8], "delta": 1e-5},
            "expected": {"mu": [0.2681, 1.666]},
            "tol": 5e-5,
        },
        {
            "id": "null",
            "inputs": {"n": [20, 100]},
            "expected": {"mean": [0.174, 0.084], "mean_abs": [0.251, 0.118]},
            "tol": 5e-4,
        },
        {
            "id": "advantage_null_mean",
            "inputs": {},
            "expected": {"rows": [[1000, 0.028, 0.038]]},
            "tol": 5e-4,
        },
        {
            "id": "best",
            "inputs": {"member": [3, 2], "nonmember": [1, 2]},
            "expected": {"advantage": 0.5},
            "tol": 1e-9,
        },
        {
            "id": "gaussian",
            "inputs": {"mu": [1], "fpr": [0.5]},
            "expected": {"tpr": [[0.841344746]]},
            "tol": 1e-8,
        },
    ],
    ids=lambda plain: plain["id"],
)
def test_audit_cases_with_other_numbers_pass(plain: dict[str, Any]) -> None:
    found = audit.judge(audit_case.from_plain(plain, where="it"))
    assert (found.status, found.reason) == (Status.PASSED, "")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "3",
        "[]",
        "{}",
        '{"cases": 3}',
        "[3]",
        '[{"case": "a"}]',
        '[{"case": "a", "kind": "rho", "params": {}, "tolerance": "exact"}]',
        '[{"id": "a", "inputs": {}, "expected": {}}]',
        '[{"id": "a", "inputs": {}, "expected": [], "tol": 1}]',
    ],
)
def test_a_file_that_holds_no_cases_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    path.write_text(content, "utf-8")
    with pytest.raises(accounting.BadCasesError, match=r"cases\.json"):
        read([path])
