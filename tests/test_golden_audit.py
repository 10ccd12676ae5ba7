"""Every reference case about scores, intervals and certificates, from an independent calculation."""

import json
from typing import TypeVar

import numpy as np
import pytest
from scipy import special

from accountant.gaussian import epsilon_from_mu, mu_from_epsilon
from attacks.statistics.auc import auc, auc_variance
from attacks.statistics.binomial import clopper_pearson, lower_limit, min_n_for_fpr, upper_limit
from attacks.statistics.certify import (
    epsilon_clopper_pearson,
    epsilon_gdp,
    epsilon_one_run,
    epsilon_one_run_fdp,
    epsilon_parametric,
    one_run_p_value,
)
from attacks.statistics.confusion import Confusion
from attacks.statistics.no_skill import no_skill_p_value, no_skill_tpr
from attacks.statistics.power import coordinates_for_power
from attacks.statistics.seeds import over_seeds
from attacks.statistics.tpr import (
    allowed_false_positives,
    operating_point,
    tpr_at_fpr,
)
from privkit.selfcheck.audit_case import SHIPPED

T = TypeVar("T")
CASES = {case["id"]: case for case in json.loads(SHIPPED.read_text("utf-8"))["cases"]}


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def case(name):
    """Return inputs, expected values and a comparison to the tolerance of the case."""
    found = CASES[name]
    return found["inputs"], found["expected"], lambda value: pytest.approx(value, abs=found["tol"])


def point(tp, m, fp, n):
    return Confusion(
        true_positives=int(tp),
        n_members=m,
        false_positives=int(fp),
        n_non_members=n,
        threshold_source="the claim",
    )


@pytest.mark.parametrize("name", ["auc_noties", "auc_ties_half", "auc_all_tied", "auc_inverted"])
def test_auc(name):
    given, expected, near = case(name)
    found = auc(given["member"], given["nonmember"])
    assert found.value == near(expected["auc"])
    assert ("direction suspect" in found.note) == expected.get("must_warn", False)
    for decoy in ("auc_ties_as_loss", "auc_ties_as_win", "auc_if_flipped"):
        assert found.value != near(expected.get(decoy, -1.0))


def test_auc_all_tied_has_no_true_positives_and_a_randomised_rate():
    given, expected, near = case("auc_all_tied")
    found = tpr_at_fpr(given["member"], given["nonmember"], fpr=0.1)
    assert sure(found.confusion).tpr == near(expected["tpr_at_fpr_0_1"])
    assert found.randomised == near(0.1)


def test_delong_ties():
    given, expected, near = case("delong_ties")
    found = auc(given["member"], given["nonmember"])
    assert found.value == near(expected["auc"])
    assert [found.low, found.high] == near(expected["ci95_logit"])
    variance = sure(auc_variance(given["member"], given["nonmember"]))
    assert variance == near(expected["var"])
    assert variance**0.5 == near(expected["se"])


def test_tpr_tie_block_over_budget():
    given, expected, near = case("tpr_tie_block_over_budget")
    members, non_members = [1.0] * 30 + [0.5] * 70, [1.0] * 3 + [0.2] * 97
    found = tpr_at_fpr(members, non_members, fpr=given["alpha"])
    assert found.estimate.value == near(expected["tpr"])
    assert sure(found.confusion).false_positives == expected["realized_fp"]
    assert found.randomised == near(expected["tpr_randomised"])
    at_five = tpr_at_fpr(members, non_members, fpr=0.05)
    assert at_five.estimate.value == near(expected["tpr_at_5pct"])
    at_five_point = sure(at_five.confusion)
    assert (at_five_point.false_positives, at_five_point.threshold) == (3, 0.5)


def test_fpr_floor_float():
    given, expected, _ = case("fpr_floor_float")
    assert [allowed_false_positives(n, fpr=alpha) for alpha, n in given["pairs"]] == expected["k"]


def test_clopper_pearson():
    _, expected, near = case("clopper_pearson")
    for k, n, low, high, one_sided_low, one_sided_high in expected["rows"]:
        assert clopper_pearson(k, n) == near((low, high))
        assert lower_limit(k, n) == near(one_sided_low)
        assert upper_limit(k, n) == near(one_sided_high)


def test_min_n_for_fpr():
    given, expected, _ = case("min_n_for_fpr")
    for key, fpr in (
        ("alpha_10pct", 0.1),
        ("alpha_1pct", 0.01),
        ("alpha_0_1pct", 0.001),
        ("alpha_0_01pct", 1e-4),
    ):
        assert min_n_for_fpr(fpr, level=given["conf"]) == expected[key]


def test_tpr_at_fpr_null_mean():
    _, expected, near = case("tpr_at_fpr_null_mean")
    for n, alpha, k, mean, ratio in expected["rows"]:
        assert allowed_false_positives(n, fpr=alpha) == k
        assert no_skill_tpr(n, allowed=k) == near(mean)
        assert no_skill_tpr(n, allowed=k) / alpha == near(ratio)


def test_tpr_at_fpr_pvalue():
    given, expected, near = case("tpr_at_fpr_pvalue")
    found = [no_skill_p_value(tp, m, allowed=k, n_non_members=n) for m, n, k, tp in given["cases"]]
    assert found == near(expected["p"])


def test_eps_lower_clopper_pearson():
    given, expected, near = case("eps_lower_clopper_pearson")
    for tp, m, fp, n, *_, best in expected["rows"]:
        assert epsilon_clopper_pearson(point(tp, m, fp, n), delta=given["delta"]).epsilon_low == near(best)


def test_eps_lower_max_possible():
    given, expected, near = case("eps_lower_max_possible")
    found = [epsilon_clopper_pearson(point(n, n, 0, n), delta=0.0).epsilon_low for n in given["N"]]
    assert found == near(expected["eps"])


def test_eps_one_run_steinke():
    given, expected, near = case("eps_one_run_steinke")
    for m, r, v, delta, low, p_at_half in expected["rows"]:
        run = {"canaries": m, "guesses": r, "correct": v, "delta": float(delta)}
        assert epsilon_one_run(**run, level=given["conf"]).epsilon_low == near(low)
        assert one_run_p_value(**run, epsilon=0.5) == near(p_at_half)


def test_eps_one_run_fdp():
    given, expected, near = case("eps_one_run_fdp")
    for m, correct, guesses, mu, epsilon in expected["rows"]:
        found = epsilon_one_run_fdp(
            canaries=m, guesses=guesses, correct=correct, delta=given["delta"], level=given["conf"]
        )
        assert (found.mu_low, found.epsilon_low) == near((mu, epsilon))


def test_seed_aggregate():
    given, expected, near = case("seed_aggregate")
    found = over_seeds(given["auc"])
    assert (found.mean, found.std, found.se) == near((expected["mean"], expected["std"], expected["se"]))
    assert [found.low, found.high] == near(expected["ci95"])
    assert found.std != near(expected["std_wrong_ddof0"])


def test_nan_policy():
    given, expected, _ = case("nan_policy")
    with pytest.raises(ValueError, match=r"members\[9\] is NaN"):
        auc(given["member"], given["nonmember"])
    assert auc(given["member"][:9], given["nonmember"]).value == expected["auc_after_drop"]


def test_single_class():
    given, expected, _ = case("single_class")
    found = auc(given["member"], given["nonmember"])
    assert (found.value, found.note) == (expected["auc"], "no non-members")
    assert tpr_at_fpr(given["member"], given["nonmember"], fpr=0.1).estimate.value is expected["tpr"]


def test_whitebox_noise_check():
    _, expected, near = case("whitebox_noise_check")
    for ratio, coordinates in expected["rows"]:
        assert coordinates_for_power(noise_ratio=ratio, significance=0.001, power=0.99) == near(coordinates)


def gdp_at_expected_counts(mu, trials, delta):
    """The certificate of the counts that are expected at the threshold half-way between the means."""
    half = trials / 2
    hits = half * special.ndtr(mu / 2)
    return epsilon_gdp(
        point(round(hits), round(half), round(half - hits), round(half)), delta=delta
    ).epsilon_low


def parametric_at_expected_distance(mu, trials, delta):
    half = max(1, round(trials / 2))
    return epsilon_parametric(np.full(half, mu), np.zeros(half), delta=delta, noise_std=1.0).epsilon_low


def test_canary_trials_needed():
    given, expected, _ = case("canary_trials_needed")
    delta, tolerance = given["delta"], CASES["canary_trials_needed"]["tol"]
    for epsilon, _, p50, p90, g50, g90, *_ in expected["rows"]:
        mu = mu_from_epsilon(epsilon=float(epsilon), delta=delta)
        wanted = [(0.5, p50, parametric_at_expected_distance), (0.9, p90, parametric_at_expected_distance)]
        wanted += [(0.5, g50, gdp_at_expected_counts), (0.9, g90, gdp_at_expected_counts)]
        for share, trials, method in wanted:
            if trials is not None:
                assert method(mu, trials * (1 + tolerance), delta) >= share * epsilon
                assert method(mu, trials * (1 - tolerance), delta) <= share * epsilon


def test_canary_certified_eps():
    given, expected, _ = case("canary_certified_eps")
    rng = np.random.default_rng(0)
    for row in expected["rows"]:
        if row["N"] not in (1000, 20_000):
            continue
        mu, half = row["mu"], row["N"] // 2
        assert epsilon_from_mu(mu=mu, delta=given["delta"]) == pytest.approx(row["eps"], rel=1e-4)
        right = special.ndtr(mu / 2)
        hits, false = rng.binomial(half, right, 101), rng.binomial(half, 1 - right, 101)
        found = [
            epsilon_gdp(point(tp, half, fp, half), delta=given["delta"]).mu_low
            for tp, fp in zip(hits, false, strict=True)
        ]
        # the reference is itself a median of 200 runs, whose noise grows with epsilon
        near = {"abs": CASES["canary_certified_eps"]["tol"] * max(1.0, row["eps"] / 4)}
        median = sorted(sure(low) for low in found)[50]
        certified = epsilon_from_mu(mu=median, delta=given["delta"]) if median else 0.0
        assert certified == pytest.approx(row["gdp_cp"], **near)
        parametric = parametric_at_expected_distance(mu, row["N"], given["delta"])
        assert parametric == pytest.approx(row["gdp_param"], **near)


def test_an_operating_point_needs_no_rate():
    given, expected, near = case("auc_all_tied")
    assert operating_point(given["member"], given["nonmember"], allowed=0).tpr == near(
        expected["tpr_at_fpr_0_1"]
    )
