"""Where nothing leaks, little is certified, and intervals hold the truth; ``make bench`` makes 1,000 runs of it."""

import math

import numpy as np
import pytest

from accountant.gaussian import epsilon_from_mu
from attacks.statistics.certify.together import certificates
from benchmarks import judging, null_runs

RUNS = 200


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("name", null_runs.METHODS)
def test_little_is_certified_without_leakage(name: str, n: int) -> None:
    assert null_runs.false_alarms(n=n, runs=RUNS)[name] <= null_runs.allowed(RUNS)


def test_what_an_audit_lists_is_what_is_calibrated() -> None:
    members, non_members = null_runs.drawn(100, 1)[0]
    listed = certificates(members, non_members, delta=null_runs.DELTA)
    assert sorted(one.method for one in listed) == sorted(null_runs.METHODS)


def test_the_published_credible_limit_is_above_zero_by_construction() -> None:
    assert null_runs.credible_alarms(n=100, runs=10) == 1


@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("n", [100, 1000])
def test_intervals_of_the_auc_hold_the_truth(n: int, mu: float) -> None:
    slack = 2 * math.sqrt(0.05 * 0.95 / RUNS)
    assert null_runs.auc_coverage(n=n, mu=mu, runs=RUNS) >= 0.95 - slack


@pytest.mark.parametrize("n", [100, 1000])
def test_intervals_of_the_tpr_hold_the_truth(n: int) -> None:
    assert null_runs.tpr_coverage(n=n, runs=RUNS) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / RUNS)


def test_a_leak_is_certified() -> None:
    """Of 1,000 canaries two standard deviations apart around 0, as their log likelihood ratios are."""
    rng = np.random.default_rng(0)
    found = null_runs.certified(rng.normal(1.0, 1.0, 500), rng.normal(-1.0, 1.0, 500))
    truth = epsilon_from_mu(mu=2.0, delta=null_runs.DELTA)
    assert set(found) == set(null_runs.METHODS)
    for name, epsilon in found.items():
        assert 1 < epsilon < truth, name


def test_peers_compute_the_same() -> None:
    members, non_members = judging.drawn(300)
    area = judging.delong(members, non_members)
    assert judging.midranks(members, non_members) == pytest.approx((area.value, area.variance), rel=1e-12)
