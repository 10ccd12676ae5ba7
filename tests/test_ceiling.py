"""Tests against the ceiling of a claim: quiet when it is met, and loud, with known power, when it is not."""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pytest
from scipy import special, stats

from accountant.tradeoff import ApproximateCurve, GaussianCurve
from attacks.statistics import ceiling_power
from attacks.statistics.area import delong
from attacks.statistics.auc import auc, auc_p_value
from attacks.statistics.ceiling import auc_above, tpr_above
from attacks.statistics.ceiling_power import auc_power, tpr_power
from attacks.statistics.confusion import Confusion
from attacks.statistics.power import (
    auc_fault_power,
    coordinates_for_power,
    noise_fault_power,
    threshold_fault_power,
    trials_for_power,
)
from attacks.statistics.residuals import scale_power
from attacks.statistics.tightness import tightness

T = TypeVar("T")


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


@dataclass(frozen=True)
class Gaussian:
    mu: float

    def tpr(self, fpr, /):
        return float(special.ndtr(special.ndtri(fpr) + self.mu))


@dataclass(frozen=True)
class Approximate:
    """(epsilon, delta)-DP."""

    epsilon: float
    delta: float

    def tpr(self, fpr, /):
        grow = math.exp(self.epsilon)
        return min(1.0, grow * fpr + self.delta, 1 - (1 - self.delta - fpr) / grow)


def point(tp, m, fp, n):
    return Confusion(
        true_positives=int(tp),
        n_members=m,
        false_positives=int(fp),
        n_non_members=n,
        threshold_source="the claim",
    )


@pytest.mark.parametrize("curve", [Gaussian(0.8), Approximate(1.0, 0.01)])
def test_rates_that_meet_the_claim_are_seldom_called_above_it(curve):
    rng = np.random.default_rng(0)
    n, fpr = 200, 0.25
    tests = [
        tpr_above(point(rng.binomial(n, curve.tpr(fpr)), n, rng.binomial(n, fpr), n), curve=curve)
        for _ in range(100)
    ]
    p = np.array([test.p_value for test in tests])
    for alpha in (0.05, 0.2):
        assert np.mean(p <= alpha) <= alpha + 2 * np.sqrt(alpha * (1 - alpha) / 100)


@pytest.mark.parametrize("counts", [(40, 50, 10, 50), (50, 50, 0, 50), (3, 50, 2, 60), (60, 90, 5, 40)])
def test_the_p_value_is_where_the_limits_touch_the_curve(counts):
    curve = Gaussian(0.6)
    at = point(*counts)
    p = sure(tpr_above(at, curve=curve).p_value)
    if p > 0.999:
        return
    for alpha, refuted in ((p * (1 + 1e-6), True), (p * (1 - 1e-6), False)):
        tpr_low, fpr_up = at.worst_rates(alpha=alpha)
        assert (tpr_low > curve.tpr(fpr_up)) == refuted


@pytest.mark.parametrize(
    ("curve", "twin"),
    [
        (GaussianCurve(mu=0.6), Gaussian(0.6)),
        (ApproximateCurve(epsilon=0.5, delta=0.01), Approximate(0.5, 0.01)),
    ],
)
def test_the_curves_of_the_accountant_are_curves(curve, twin):
    at = point(45, 50, 12, 60)
    assert tpr_above(at, curve=curve).p_value == pytest.approx(tpr_above(at, curve=twin).p_value, rel=1e-6)
    assert tpr_above(at, curve=curve).ceiling == pytest.approx(twin.tpr(0.2))


def test_rates_under_the_curve_are_not_significant():
    assert tpr_above(point(10, 50, 10, 50), curve=Gaussian(0.6)).p_value == pytest.approx(1.0)


def test_overwhelming_rates_do_not_underflow():
    p = sure(tpr_above(point(10**6, 10**6, 0, 10**6), curve=Gaussian(0.1)).p_value)
    assert 0 < p < 1e-290


def test_an_auc_test_carries_the_p_value_and_the_reason():
    members, non_members = [3, 4, 5, 6, 2.5], [1, 2, 3.5, 4.5]
    test = auc_above(members, non_members, ceiling=0.6)
    assert test.value == auc(members, non_members).value
    assert test.p_value == auc_p_value(members, non_members, ceiling=0.6)
    none = auc_above([], non_members, ceiling=0.6)
    assert (none.value, none.p_value, none.note) == (None, None, "no members")
    assert none.to_dict()["assumptions"] == ["records are independent of each other"]


@pytest.mark.parametrize(("mu", "n"), [(0.5, 150), (0.9, 60), (1.67, 50)])
def test_the_power_of_the_auc_test_is_what_simulation_finds(mu, n):
    rng = np.random.default_rng(1)
    ceiling = float(special.ndtr(mu / np.sqrt(2)))
    seen = [
        delong(rng.normal(2 * mu, 1, n), rng.normal(0, 1, n)).p_above(ceiling) <= 0.001 for _ in range(500)
    ]
    assert auc_fault_power(mu=mu, n_members=n, n_non_members=n) == pytest.approx(np.mean(seen), abs=0.07)


def test_the_error_of_the_auc_is_exact_where_it_is_known():
    # without skill the variance of Mann and Whitney's statistic is (M + N + 1) / (12 M N)
    for m, n in ((2, 2), (5, 9), (40, 3)):
        error = ceiling_power._logit_error(np.array([0.5]), m, n)[0]
        assert error == pytest.approx(4 * np.sqrt((m + n + 1) / (12 * m * n)))


def test_the_power_is_not_promised_too_high_where_few_pairs_disagree():
    rng = np.random.default_rng(2)
    for mu, n in ((1.67, 30), (2.5, 60)):  # almost nothing overlaps
        ceiling = float(special.ndtr(mu / np.sqrt(2)))
        seen = [
            delong(rng.normal(2 * mu, 1, n), rng.normal(0, 1, n)).p_above(ceiling) <= 0.001
            for _ in range(300)
        ]
        assert auc_fault_power(mu=mu, n_members=n, n_non_members=n) <= np.mean(seen) + 0.05


def test_the_power_of_the_threshold_test_is_a_sum_over_all_counts():
    m, n, significance, curve = 12, 9, 0.05, Gaussian(0.7)
    tpr, fpr = 0.9, 0.08
    expected = sum(
        stats.binom.pmf(tp, m, tpr) * stats.binom.pmf(fp, n, fpr)
        for tp in range(m + 1)
        for fp in range(n + 1)
        if sure(tpr_above(point(tp, m, fp, n), curve=curve).p_value) < significance
    )
    found = tpr_power(tpr=tpr, fpr=fpr, curve=curve, n_members=m, n_non_members=n, significance=significance)
    assert found == pytest.approx(expected, rel=1e-9)
    assert 0.1 < found < 0.9


def test_a_correct_mechanism_is_flagged_at_most_at_the_level():
    for mu, n in ((0.5, 100), (1.7, 57)):
        right = float(special.ndtr(mu / 2))
        flagged = tpr_power(
            tpr=right, fpr=1 - right, curve=Gaussian(mu), n_members=n, n_non_members=n, significance=0.01
        )
        assert flagged <= 0.01


@pytest.mark.parametrize("test", [auc_fault_power, threshold_fault_power, noise_fault_power])
@pytest.mark.parametrize("mu", [0.27, 1.67])
def test_the_number_of_trials_just_reaches_the_power(test, mu):
    n = trials_for_power(mu=mu, power=0.9, test=test)
    assert test(mu=mu, n_members=n, n_non_members=n) >= 0.9
    assert test(mu=mu, n_members=n - 1, n_non_members=n - 1) < 0.9


def test_power_grows_with_trials_with_the_fault_and_with_the_level():
    base = {"mu": 0.5, "n_members": 100, "n_non_members": 100, "significance": 0.001, "noise_ratio": 0.5}
    for test in (auc_fault_power, threshold_fault_power):
        for better in (
            {"n_members": 200, "n_non_members": 200},
            {"noise_ratio": 0.3},
            {"significance": 0.05},
        ):
            assert test(**{**base, **better}) > test(**base)


def test_each_test_is_the_better_one_where_it_is_said_to_be():
    for mu in (0.3, 0.99):
        assert trials_for_power(mu=mu, test=auc_fault_power) < trials_for_power(
            mu=mu, test=threshold_fault_power
        )
    assert trials_for_power(mu=2.5) == trials_for_power(mu=2.5, test=threshold_fault_power)


def test_a_claim_too_weak_to_exceed_says_so():
    assert noise_fault_power(mu=40.0, n_members=1000, n_non_members=1000) == 0.0
    with pytest.raises(ValueError, match="not enough"):
        trials_for_power(mu=40.0)


def test_bad_power_questions_are_refused():
    with pytest.raises(ValueError, match="at least 2"):
        auc_power(auc=0.7, ceiling=0.6, n_members=1, n_non_members=10, significance=0.05)
    with pytest.raises(ValueError, match="mu"):
        trials_for_power(mu=0.0)
    with pytest.raises(ValueError, match="noise_ratio"):
        noise_fault_power(mu=1.0, n_members=10, n_non_members=10, noise_ratio=1.0)


@pytest.mark.parametrize("ratio", [0.9, 0.5])
def test_the_number_of_coordinates_just_reaches_the_power(ratio):
    n = coordinates_for_power(noise_ratio=ratio)
    assert scale_power(n, significance=0.001, ratio=ratio) >= 0.99
    assert scale_power(n - 1, significance=0.001, ratio=ratio) < 0.99


@pytest.mark.parametrize("ratio", [1.0, 2.0])
def test_tightness_is_the_share_of_mu_that_was_shown(ratio):
    rng = np.random.default_rng(3)
    mu = 0.5
    found = tightness(auc(rng.normal(ratio * mu, 1, 20_000), rng.normal(0, 1, 20_000)), mu=mu)
    assert sure(found.low) < ratio < sure(found.high)
    assert found.value == pytest.approx(ratio, abs=0.08)


def test_tightness_of_no_auc_or_of_full_separation_has_a_reason():
    assert tightness(auc([], [1.0]), mu=1.0).note == "no members"
    assert "no finite mu" in tightness(auc([2.0, 3.0], [0.0, 1.0]), mu=1.0).note
