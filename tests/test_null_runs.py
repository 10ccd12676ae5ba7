"""Where nothing leaks, little is certified, and intervals hold the truth; ``make bench`` makes 1,000 runs of it."""

import math

import pytest

from benchmarks import judging, null_runs

RUNS = 200


@pytest.mark.parametrize("n", [100, 1000])
@pytest.mark.parametrize("name", sorted(set(null_runs.CERTIFIERS) - set(null_runs.CREDIBLE)))
def test_little_is_certified_without_leakage(name: str, n: int) -> None:
    assert null_runs.false_alarms(name, n=n, runs=RUNS) <= null_runs.allowed(RUNS)


@pytest.mark.parametrize("name", null_runs.CREDIBLE)
def test_a_credible_limit_is_above_zero_by_construction(name: str) -> None:
    assert null_runs.false_alarms(name, n=100, runs=5) == 1


@pytest.mark.parametrize("mu", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("n", [100, 1000])
def test_intervals_of_the_auc_hold_the_truth(n: int, mu: float) -> None:
    slack = 2 * math.sqrt(0.05 * 0.95 / RUNS)
    assert null_runs.auc_coverage(n=n, mu=mu, runs=RUNS) >= 0.95 - slack


@pytest.mark.parametrize("n", [100, 1000])
def test_intervals_of_the_tpr_hold_the_truth(n: int) -> None:
    assert null_runs.tpr_coverage(n=n, runs=RUNS) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / RUNS)


def test_a_leak_is_certified() -> None:
    runs = null_runs.drawn(1000, 1, shift=2.0)
    for name, certify in null_runs.CERTIFIERS.items():
        assert certify(*runs[0]).epsilon_low > 1, name


def test_peers_compute_the_same() -> None:
    members, non_members = judging.drawn(300)
    area = judging.delong(members, non_members)
    assert judging.midranks(members, non_members) == pytest.approx((area.value, area.variance), rel=1e-12)
