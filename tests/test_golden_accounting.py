"""Every reference value of the Gaussian, pure and joint families, from an independent calculation."""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from accountant import gaussian, joint, paper, rdp
from accountant.claims import claim
from accountant.events import Composed, Event, Gaussian, GroupGaussian, PureDP, Repeated
from accountant.joint_curve import JointCurve
from accountant.selfcheck.case import SHIPPED
from accountant.tradeoff import AbstractCurve, ApproximateCurve, GaussianCurve
from privkit.selfcheck.audit_case import SHIPPED as SHIPPED_AUDIT

# families that only the self-check runs (tests/test_selfcheck.py)
OTHERS = ("laplace", "joint_laplace", "br_", "pure_zcdp", "topk", "adj_")
CASES = {
    case["case"]: case
    for case in json.loads(SHIPPED.read_text("utf-8"))
    if not case["case"].startswith(OTHERS)
}
AUDIT = {case["id"]: case for case in json.loads(SHIPPED_AUDIT.read_text("utf-8"))["cases"]}
Params = dict[str, Any]


def mu_of(given: Params) -> float:
    """mu as a number, or as "mu(eps,delta)", or of a mechanism."""
    if isinstance(given.get("mu"), str):
        epsilon, delta = map(float, given["mu"].removeprefix("mu(").removesuffix(")").split(","))
        return gaussian.mu_from_epsilon(epsilon=epsilon, delta=delta)
    return given["mu"] if "mu" in given else gaussian.mu_from_sigma(sigma=given["sigma"], rounds=given["T"])


def event_of(given: Params) -> Event:
    """The events that a case describes."""
    if "sigmas" in given:
        parts: tuple[Event, ...] = tuple(Gaussian(noise_multiplier=float(s)) for s in given["sigmas"])
        return Repeated(event=Composed(events=parts), count=given["repeat"])
    parts = ()
    if "sigma_A" in given:
        parts += (GroupGaussian(noise_multipliers=(given["sigma_A"], given["sigma_B"])),)
    if "sigma" in given:
        parts += (Gaussian(noise_multiplier=given["sigma"]),)
    for name in ("eps0", "eps0_per_round"):
        if name in given:
            parts += (PureDP(epsilon=given[name]),)
    return Repeated(event=Composed(events=parts), count=given["T"])


def curve_of(given: Params) -> AbstractCurve:
    """The ceiling that a case describes."""
    if "eps0" in given:
        return JointCurve(mu=given["mu"], pure=((given["eps0"], given["T"]),))
    if "mu" in given:
        return GaussianCurve(mu=mu_of(given))
    return ApproximateCurve(epsilon=given["epsilon"], delta=given["delta"])


def sigma_of(given: Params) -> float:
    """The calibration that a case describes."""
    budget = {"epsilon": given["epsilon"], "delta": given["delta"], "rounds": given["T"]}
    if "r" in given:
        return joint.sigma_from_epsilon(**budget, selection_share=given["r"])
    if "alphas" in given:
        return rdp.sigma_classic(**budget, orders=rdp.VPDR_ORDERS)
    return gaussian.sigma_from_epsilon(**budget)


def epsilon_of(given: Params) -> float:
    """The epsilon that a case describes."""
    if "c1" in given:
        c1 = math.sqrt(2) if given["c1"] == "sqrt2" else given["c1"]
        return paper.truth(epsilon=given["epsilon"], delta=given["delta"], c1=c1).epsilon
    return claim(event_of(given), delta=given["delta"]).epsilon


ANSWERS: dict[str, Callable[[Params], float]] = {
    "epsilon": epsilon_of,
    "sigma": sigma_of,
    "delta": lambda p: (
        paper.truth(epsilon=p["epsilon"], delta=p["delta_claimed"], c1=p["c1"]).delta
        if "c1" in p
        else gaussian.delta_from_mu(epsilon=p["epsilon"], mu=p["mu"])
    ),
    "log_delta": lambda p: gaussian.log_delta_from_mu(epsilon=p["epsilon"], mu=p["mu"]),
    "mu": lambda p: gaussian.mu_from_pure_epsilon(epsilon=p["eps0"]),
    "tpr": lambda p: curve_of(p).tpr(p["fpr"]),
    "auc": lambda p: curve_of(p).auc,
    "advantage": lambda p: curve_of(p).advantage,
}


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case["kind"] in ANSWERS])
def test_reference_value(name: str) -> None:
    case = CASES[name]
    tolerance = str(case["tolerance"]).partition(";")[0]
    size = float(tolerance.removeprefix("rel "))
    if name == "rdp_improved_conversion_continuous_alpha":
        found = rdp.epsilon_best(mu=mu_of(case["params"]), delta=case["params"]["delta"])
    else:
        found = ANSWERS[case["kind"]](case["params"])
    want = float(case["value"])
    bound: Params = {"rel": size, "abs": 0.0} if tolerance.startswith("rel") else {"rel": 0.0, "abs": size}
    assert found == pytest.approx(want, **bound)
    if "safe side" in str(case["tolerance"]):
        assert Decimal(found) >= Decimal(case["value"])


def test_a_nan_sigma_is_refused_everywhere() -> None:
    assert CASES["anchor_nan_sigma"]["kind"] == "must_raise"
    with pytest.raises(ValueError, match="sigma is NaN"):
        gaussian.mu_from_sigma(sigma=math.nan)
    with pytest.raises(ValueError, match="noise_multiplier is NaN"):
        Gaussian(noise_multiplier=math.nan)
    with pytest.raises(ValueError, match="mu is NaN"):
        rdp.epsilon_best(mu=math.nan, delta=1e-5)


def test_every_case_is_run() -> None:
    assert {case["kind"] for case in CASES.values()} == {*ANSWERS, "must_raise"}
    assert len(CASES) == 45


def test_vpdr_own_noise_leaves_a_third_of_its_budget_unspent() -> None:
    event = event_of({"eps0_per_round": 0.002, "sigma": 38.423866743730905, "T": 50})
    assert claim(event, delta=1e-5).epsilon == pytest.approx(0.66457, abs=1e-5)


def audit_case(name: str) -> tuple[Params, Params, float]:
    case = AUDIT[name]
    return case["inputs"], case["expected"], case["tol"]


def test_sigma_calibration_over_rounds() -> None:
    given, expected, tolerance = audit_case("sigma_calibration_T_rounds")
    for epsilon, rounds, exact, classic, ratio in expected["rows"]:
        budget = {"epsilon": float(epsilon), "delta": given["delta"], "rounds": rounds}
        assert gaussian.sigma_from_epsilon(**budget) == pytest.approx(exact, rel=tolerance)
        assert rdp.sigma_classic(**budget) == pytest.approx(classic, rel=tolerance)
        assert classic / exact == pytest.approx(ratio, rel=tolerance)


def test_the_roc_of_epsilon_and_delta() -> None:
    given, expected, tolerance = audit_case("epsdelta_roc_bound")
    for epsilon, row in zip(given["eps"], expected["tpr"], strict=True):
        found = ApproximateCurve(epsilon=float(epsilon), delta=given["delta"])
        assert [found.tpr(fpr) for fpr in given["fpr"]] == pytest.approx(row, abs=tolerance)


def test_the_area_and_advantage_of_epsilon_and_delta() -> None:
    given, expected, tolerance = audit_case("epsdelta_auc_bound")
    found = [ApproximateCurve(epsilon=float(epsilon), delta=given["delta"]) for epsilon in given["eps"]]
    assert [curve.auc for curve in found] == pytest.approx(expected["auc"], abs=tolerance)
    assert [curve.advantage for curve in found] == pytest.approx(expected["adv"], abs=tolerance)


def test_one_round_hides_what_all_rounds_show() -> None:
    given, expected, tolerance = audit_case("per_round_vs_aggregate")
    for epsilon, rounds, one, everything in expected["rows"]:
        sigma = gaussian.sigma_from_epsilon(epsilon=float(epsilon), delta=given["delta"], rounds=rounds)
        assert GaussianCurve(mu=1 / sigma).auc == pytest.approx(one, abs=tolerance)
        mu = gaussian.mu_from_sigma(sigma=sigma, rounds=rounds)
        assert GaussianCurve(mu=mu).auc == pytest.approx(everything, abs=tolerance)
