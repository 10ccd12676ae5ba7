"""Lower limits on epsilon: never above the truth more often than they say, and zero without leakage."""

import itertools
import json
import math
from typing import TypeVar

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from accountant.gaussian import epsilon_from_mu
from attacks.statistics.certify import (
    Certificate,
    epsilon_bayesian,
    epsilon_clopper_pearson,
    epsilon_gdp,
    epsilon_one_run,
    epsilon_one_run_fdp,
    epsilon_parametric,
    one_run_p_value,
)
from attacks.statistics.confusion import Confusion, confusion

T = TypeVar("T")
DELTA = 1e-5
RUNS = 200
SLACK = 2 * np.sqrt(0.05 * 0.95 / RUNS)


def sure(value: T | None) -> T:
    """Return a value that must be there."""
    assert value is not None
    return value


def point(tp, m, fp, n):
    return Confusion(
        true_positives=int(tp),
        n_members=m,
        false_positives=int(fp),
        n_non_members=n,
        threshold_source="the claim",
    )


@pytest.mark.parametrize("method", [epsilon_clopper_pearson, epsilon_gdp])
@pytest.mark.parametrize("n", [100, 1000])
def test_without_leakage_rates_certify_nothing(method, n):
    rng = np.random.default_rng(n)
    certified = [
        method(point(*(x for count in rng.binomial(n, 0.3, 2) for x in (count, n))), delta=DELTA).epsilon_low
        > 0
        for _ in range(RUNS)
    ]
    assert np.mean(certified) <= 0.05 + SLACK


@pytest.mark.parametrize("noise_std", [2.0, None])
def test_without_leakage_normal_scores_certify_nothing(noise_std):
    rng = np.random.default_rng(5)
    certified = [
        epsilon_parametric(
            rng.normal(7, 2, 50), rng.normal(7, 2, 80), delta=DELTA, noise_std=noise_std
        ).epsilon_low
        > 0
        for _ in range(RUNS)
    ]
    assert np.mean(certified) <= 0.05 + SLACK


@pytest.mark.parametrize("method", [epsilon_one_run, epsilon_one_run_fdp])
def test_without_leakage_one_run_certifies_nothing(method):
    # a guess is right with probability 1/2: only the number of right guesses matters
    rng = np.random.default_rng(6)
    low = {v: method(canaries=200, guesses=100, correct=v, delta=DELTA).epsilon_low for v in range(45, 76)}
    right = np.clip(rng.binomial(100, 0.5, 4000), 45, 75)
    assert np.mean([low[v] > 0 for v in right]) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 4000)
    assert max(low.values()) > 0


@pytest.mark.parametrize("mu", [0.5, 1.7])
def test_limits_on_mu_lie_below_the_truth(mu):
    rng = np.random.default_rng(7)
    too_high = {"gdp": 0, "parametric": 0, "estimated": 0, "clopper pearson": 0}
    for _ in range(RUNS):
        members, non_members = rng.normal(mu, 1, 100), rng.normal(0, 1, 100)
        at = confusion(members, non_members, threshold=mu / 2, threshold_source="the claim")
        too_high["gdp"] += epsilon_gdp(at, delta=DELTA).mu_low > mu
        too_high["parametric"] += (
            epsilon_parametric(members, non_members, delta=DELTA, noise_std=1.0).mu_low > mu
        )
        too_high["estimated"] += epsilon_parametric(members, non_members, delta=DELTA).mu_low > mu
        epsilon = epsilon_from_mu(mu=mu, delta=DELTA)
        too_high["clopper pearson"] += epsilon_clopper_pearson(at, delta=DELTA).epsilon_low > epsilon
    assert all(count / RUNS <= 0.05 + SLACK for count in too_high.values()), too_high
    assert too_high["parametric"] > 0  # the exact one errs as often as it says


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_limits_on_randomised_response_lie_below_the_truth(epsilon):
    rng = np.random.default_rng(8)
    right = special.expit(epsilon)
    n = 120
    low = {v: epsilon_one_run(canaries=n, guesses=n, correct=v, delta=0.0).epsilon_low for v in range(n + 1)}
    drawn = rng.binomial(n, right, 4000)
    assert np.mean([low[v] > epsilon for v in drawn]) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 4000)
    rates = [point(rng.binomial(n, right), n, rng.binomial(n, 1 - right), n) for _ in range(RUNS)]
    assert (
        np.mean([epsilon_clopper_pearson(at, delta=0.0).epsilon_low > epsilon for at in rates])
        <= 0.05 + SLACK
    )


def test_detected_faults_are_certified_above_the_claim():
    # half of the noise missing: mu doubles
    rng = np.random.default_rng(9)
    members, non_members = rng.normal(1.0, 1, 2000), rng.normal(0, 1, 2000)
    at = confusion(members, non_members, threshold=0.25, threshold_source="mu/2 of the claim")
    assert sure(epsilon_gdp(at, delta=DELTA).mu_low) > 0.5
    assert sure(epsilon_parametric(members, non_members, delta=DELTA).mu_low) > 0.5


def test_an_estimated_deviation_sees_missing_noise_that_a_claimed_one_hides():
    rng = np.random.default_rng(10)
    members, non_members = 0.5 + rng.normal(0, 0.5, 2000), rng.normal(0, 0.5, 2000)
    assert sure(epsilon_parametric(members, non_members, delta=DELTA).mu_low) > 0.9
    assert sure(epsilon_parametric(members, non_members, delta=DELTA, noise_std=1.0).mu_low) < 0.5


def test_an_estimated_deviation_costs_half_of_the_error():
    members, non_members = [2.0, 3.0, 4.5, 3.5], [0.5, 1.0, 0.0]
    squares = float(np.var(members) * 4 + np.var(non_members) * 3)
    upper = np.sqrt(squares / special.chdtri(5, 0.95))  # five degrees of freedom, lower tail of 5 %
    distance = np.mean(members) - np.mean(non_members)
    expected = distance / upper - special.ndtri(0.95) * np.sqrt(1 / 4 + 1 / 3)
    found = epsilon_parametric(members, non_members, delta=DELTA, level=0.9)
    assert found.mu_low == pytest.approx(expected)


def naive_one_run_p_value(m, r, v, epsilon, delta):
    """Steinke et al., Theorem 5.2, term by term in 30 digits."""
    with mpmath.workdps(30):
        q = 1 / (1 + mpmath.exp(-epsilon))
        pmf = [mpmath.binomial(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
        window = max((mpmath.fsum(pmf[max(0, v - i) : v]) / i for i in range(1, m + 1)), default=0)
        return float(min(mpmath.mpf(1), mpmath.fsum(pmf[v:]) + 2 * m * mpmath.mpf(delta) * window))


@pytest.mark.parametrize(("m", "r", "v"), [(40, 30, 22), (30, 30, 30), (20, 10, 0), (25, 20, 1)])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.4, 1e-3), (2.0, 1e-5)])
def test_the_one_run_p_value_is_the_theorem(m, r, v, epsilon, delta):
    found = one_run_p_value(canaries=m, guesses=r, correct=v, epsilon=epsilon, delta=delta)
    assert found == pytest.approx(naive_one_run_p_value(m, r, v, epsilon, delta), rel=1e-10)


def test_the_one_run_limit_is_where_the_p_value_crosses():
    low = epsilon_one_run(canaries=300, guesses=200, correct=140, delta=DELTA, level=0.9).epsilon_low
    at = [
        one_run_p_value(canaries=300, guesses=200, correct=140, epsilon=e, delta=DELTA)
        for e in (low - 1e-6, low + 1e-6)
    ]
    assert at[0] < 0.1 < at[1]


def naive_refuted(mu, m, guesses, correct, tau):
    """Mahloujifar et al., Algorithm 3, one mu at a time."""
    r, h = tau * correct / m, tau * (guesses - correct) / m
    for i in range(correct - 1, -1, -1):
        new = max(h, special.ndtr(special.ndtri(r) - mu))
        r, h = r + i / (guesses - i) * (new - h), new
    return r + h > guesses / m


def test_the_fdp_limit_is_the_last_mu_that_the_algorithm_refutes():
    low = sure(epsilon_one_run_fdp(canaries=500, guesses=120, correct=95, delta=DELTA, level=0.9).mu_low)
    assert naive_refuted(low, 500, 120, 95, 0.1)
    assert not naive_refuted(low + 1e-7, 500, 120, 95, 0.1)


def test_the_bayesian_limit_leaves_just_its_share_of_the_posterior():
    rng = np.random.default_rng(11)
    low = epsilon_bayesian(point(70, 100, 40, 120), delta=0.01, level=0.9).epsilon_low
    fnr, fpr = rng.beta(30.5, 70.5, 400_000), rng.beta(40.5, 80.5, 400_000)
    grow = math.exp(low)
    private = np.ones(400_000, bool)
    for x, y in ((fnr, fpr), (fpr, fnr), (1 - fnr, 1 - fpr), (1 - fpr, 1 - fnr)):
        private &= grow * x + y >= 1 - 0.01
    assert np.mean(private) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 400_000))


def test_the_published_bayesian_example():
    # README of microsoft/responsible-ai-toolbox-privacy: .145 and 6.399, to their tolerance of .01 on epsilon
    at = point(487, 487, 512, 513)
    assert epsilon_bayesian(at, delta=DELTA, level=0.95).epsilon_low == pytest.approx(0.145, abs=0.01)
    assert epsilon_bayesian(at, delta=DELTA, level=0.05).epsilon_low == pytest.approx(6.399, abs=0.02)


def test_a_credible_limit_is_no_confidence_limit():
    # it calls leakage where there is none, which is why it says so
    cert = epsilon_bayesian(point(50, 100, 50, 100), delta=0.0)
    assert cert.epsilon_low > 0
    assert any("even without leakage" in words for words in cert.assumptions)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_flipping_every_guess_of_both_classes_swaps_the_two_logarithms(m, n, data):
    tp, fp = data.draw(st.integers(0, m)), data.draw(st.integers(0, n))
    one = epsilon_clopper_pearson(point(tp, m, fp, n), delta=DELTA).epsilon_low
    swapped = epsilon_clopper_pearson(point(n - fp, n, m - tp, m), delta=DELTA).epsilon_low
    assert one == pytest.approx(swapped, abs=1e-12)


def certificates(correct, *, delta=DELTA, level=0.95):
    at = point(correct, 100, 100 - correct, 100)
    run = {"canaries": 200, "guesses": 100, "correct": correct, "delta": delta, "level": level}
    return {
        "clopper pearson": epsilon_clopper_pearson(at, delta=delta, level=level),
        "gdp": epsilon_gdp(at, delta=delta, level=level),
        "bayesian": epsilon_bayesian(at, delta=delta, level=level),
        "one run": epsilon_one_run(**run),
        "one run fdp": epsilon_one_run_fdp(**run),
    }


def test_more_right_guesses_never_certify_less():
    ladder = [certificates(correct) for correct in (50, 60, 75, 90, 100)]
    for lower, higher in itertools.pairwise(ladder):
        for name, low in lower.items():
            assert higher[name].epsilon_low >= low.epsilon_low - 1e-6, name


def test_more_confidence_and_a_larger_delta_never_certify_more():
    for base, other in (({}, {"level": 0.99}), ({}, {"delta": 1e-3})):
        one, two = certificates(85, **base), certificates(85, **other)
        for name in one:
            assert two[name].epsilon_low <= one[name].epsilon_low + 1e-6, name


def test_trying_more_thresholds_costs():
    at = point(80, 100, 20, 100)
    for method in (epsilon_clopper_pearson, epsilon_gdp):
        several = method(at, delta=DELTA, comparisons=10)
        assert several.epsilon_low < method(at, delta=DELTA).epsilon_low
        assert several.epsilon_low == method(at, delta=DELTA, level=0.995).epsilon_low
        assert "10 comparison(s) corrected for" in several.assumptions


def test_certificates_survive_strict_json_and_carry_what_they_rest_on():
    certs = [*certificates(80).values(), epsilon_parametric([1.0, 2, 3], [0.0, 1], delta=DELTA)]
    for cert in certs:
        written = json.dumps(cert.to_dict(), allow_nan=False)
        assert Certificate.from_dict(json.loads(written)) == cert
        assert cert.assumptions
        assert cert.evidence
        if cert.mu_low:
            assert cert.epsilon_low == pytest.approx(epsilon_from_mu(mu=cert.mu_low, delta=DELTA))


@pytest.mark.parametrize("counts", [(0, 10, 10, 10), (0, 10, 0, 10), (10, 10, 10, 10)])
def test_rates_on_the_wrong_side_certify_nothing(counts):
    assert epsilon_gdp(point(*counts), delta=DELTA).mu_low == 0.0
    assert epsilon_gdp(point(*counts), delta=DELTA).epsilon_low == 0.0


@pytest.mark.parametrize(("m", "r", "v"), [(10, 11, 5), (10, 5, 6), (0, 0, 0), (10, 5, -1)])
def test_guesses_that_do_not_nest_are_refused(m, r, v):
    for method in (epsilon_one_run, epsilon_one_run_fdp):
        with pytest.raises(ValueError, match=r"correct|guesses|canaries"):
            method(canaries=m, guesses=r, correct=v, delta=DELTA)


def test_what_makes_no_certificate_is_refused():
    with pytest.raises(ValueError, match="delta"):
        epsilon_clopper_pearson(point(5, 10, 1, 10), delta=1.0)
    with pytest.raises(ValueError, match="delta"):
        epsilon_gdp(point(9, 10, 1, 10), delta=0.0)
    with pytest.raises(ValueError, match="no members"):
        epsilon_parametric([], [0.0], delta=DELTA)
    with pytest.raises(ValueError, match="noise_std"):
        epsilon_parametric([1.0, 1.0], [0.0, 0.0], delta=DELTA)
    with pytest.raises(ValueError, match="noise_std"):
        epsilon_parametric([1.0, 2.0], [0.0, 0.0], delta=DELTA, noise_std=0.0)
