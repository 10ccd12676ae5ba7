"""What certificates and intervals say where nothing leaks: 1,000 runs each, members and non-members alike.

A lower limit on epsilon may lie above 0 in at most 5 % of them, and an interval must hold the truth in at least 95 %,
each within two standard errors of the 1,000 runs.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from attacks.statistics.auc import auc
from attacks.statistics.certify import Certificate, bayesian, epsilon_bayesian
from attacks.statistics.certify.together import certificates
from attacks.statistics.confusion import confusion
from attacks.statistics.tpr import tpr_at_fpr
from benchmarks.protocol import Limit, Result

DELTA, LEVEL = 1e-5, 0.95
METHODS = (
    "Gaussian DP with Clopper-Pearson",
    "Clopper-Pearson",
    "normal scores",
    "Bayesian, one-sided",
    "one run",
    "one run, Gaussian DP",
)
CREDIBLE = bayesian.TWO_SIDED
"""A limit that is above 0 by construction: the posterior gives no mass to "no leakage at all"."""
Scores = np.ndarray


def certified(members: Scores, non_members: Scores) -> dict[str, float]:
    """Return the epsilon that every method certifies, as an audit calls it."""
    found = certificates(members, non_members, delta=DELTA)
    return {one.method: one.epsilon_low for one in found if isinstance(one, Certificate)}


def credible(members: Scores, non_members: Scores) -> float:
    """Return the published Bayesian limit."""
    point = confusion(members, non_members, threshold=0.0, threshold_source="fixed beforehand")
    return epsilon_bayesian(point, delta=DELTA).epsilon_low


def drawn(n: int, runs: int, *, shift: float = 0.0) -> list[tuple[Scores, Scores]]:
    """Return scores of n candidates of so many runs; each is a member by its own coin."""
    rng = np.random.default_rng(n)
    sizes = rng.binomial(n, 0.5, runs).tolist()
    return [(rng.normal(shift, 1.0, m), rng.normal(0.0, 1.0, n - m)) for m in sizes]


@cache
def false_alarms(*, n: int, runs: int = 1000) -> dict[str, float]:
    """Return the share of runs without leakage in which each method certifies an epsilon above 0."""
    found = [certified(*run) for run in drawn(n, runs)]
    return {method: float(np.mean([one[method] > 0 for one in found])) for method in METHODS}


def credible_alarms(*, n: int, runs: int) -> float:
    """Return the share of runs without leakage in which the published Bayesian limit is above 0."""
    return float(np.mean([credible(*run) > 0 for run in drawn(n, runs)]))


def auc_coverage(*, n: int, mu: float, runs: int = 1000) -> float:
    """Return the share of runs whose interval holds the AUC that scores were drawn with."""
    truth = 0.5 * math.erfc(-mu / 2)
    found = [auc(*run, level=LEVEL) for run in drawn(n, runs, shift=mu)]
    return float(
        np.mean([f.low <= truth <= f.high for f in found if f.low is not None and f.high is not None])
    )


def tpr_coverage(*, n: int, runs: int = 1000) -> float:
    """Return the share of runs whose interval holds the share of all members above the run's own threshold."""
    held = []
    for members, non_members in drawn(n, runs, shift=1.0):
        found = tpr_at_fpr(members, non_members, fpr=0.1)
        assert found.confusion is not None
        assert found.confusion.threshold is not None
        truth = 0.5 * math.erfc((found.confusion.threshold - 1.0) / math.sqrt(2))
        assert found.estimate.low is not None
        assert found.estimate.high is not None
        held.append(found.estimate.low <= truth <= found.estimate.high)
    return float(np.mean(held))


def allowed(runs: int) -> float:
    return 0.05 + 2 * math.sqrt(0.05 * 0.95 / runs)


def alarm_row(name: str, n: int) -> list[Result]:
    must = Limit(allowed(1000), at_least=False)
    return [_row(_WITHOUT.format(n), name, false_alarms(n=n)[name], must)]


def credible_row(n: int, *, runs: int = 100) -> list[Result]:
    found = credible_alarms(n=n, runs=runs)
    return [_row(_WITHOUT.format(n), f"{CREDIBLE}, as published", found, None, check=f"{runs} runs")]


def coverage_row(what: str, measure: Callable[[], float]) -> list[Result]:
    return [_row(what, "95 % interval", measure(), Limit(0.936))]


_WITHOUT = "eps > 0 without leakage, n = {:,}"


def _row(workload: str, peer: str, share: float, must: Limit | None, *, check: str = "1,000 runs") -> Result:
    return Result(
        id="null",
        workload=workload,
        peer=peer,
        value=share,
        low=share,
        high=share,
        unit="",
        check=check,
        must=must,
    )


ROWS = [
    *(partial(alarm_row, name, n) for n in (100, 1000) for name in METHODS),
    *(partial(credible_row, n) for n in (100, 1000)),
    *(
        partial(coverage_row, f"AUC, n = {n:,}, mu = {mu:g}", partial(auc_coverage, n=n, mu=mu))
        for n in (100, 1000)
        for mu in (0.0, 0.5, 2.0)
    ),
    *(partial(coverage_row, f"TPR at 10 % FPR, n = {n:,}", partial(tpr_coverage, n=n)) for n in (100, 1000)),
]
