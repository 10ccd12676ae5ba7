"""What certificates and intervals say where nothing leaks: 1,000 runs each, members and non-members alike.

A lower limit on epsilon may lie above 0 in at most 5 % of them, and an interval must hold the truth in at least 95 %,
each within two standard errors of the 1,000 runs.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from attacks.statistics.auc import auc
from attacks.statistics.certify import (
    Certificate,
    epsilon_bayesian,
    epsilon_clopper_pearson,
    epsilon_gdp,
    epsilon_one_run,
    epsilon_one_run_fdp,
    epsilon_parametric,
)
from attacks.statistics.confusion import Confusion, confusion
from attacks.statistics.tpr import tpr_at_fpr
from benchmarks.protocol import Limit, Result

DELTA, LEVEL = 1e-5, 0.95
Scores = np.ndarray
Certifier = Callable[[Scores, Scores], Certificate]


def at_zero(members: Scores, non_members: Scores) -> Confusion:
    """Return the counts at threshold 0, which no score had a part in choosing."""
    return confusion(members, non_members, threshold=0.0, threshold_source="fixed beforehand")


def guessed(of: Callable[..., Certificate], members: Scores, non_members: Scores) -> Certificate:
    """Guess on the half of the canaries whose scores are farthest from 0."""
    scores, truth = (
        np.concatenate([members, non_members]),
        np.repeat([1, -1], [len(members), len(non_members)]),
    )
    chosen = np.argsort(-np.abs(scores))[: len(scores) // 2]
    correct = int((np.sign(scores[chosen]) == truth[chosen]).sum())
    return of(canaries=len(scores), guesses=len(chosen), correct=correct, delta=DELTA)


CERTIFIERS: dict[str, Certifier] = {
    "Clopper-Pearson": lambda a, b: epsilon_clopper_pearson(at_zero(a, b), delta=DELTA),
    "GDP": lambda a, b: epsilon_gdp(at_zero(a, b), delta=DELTA),
    "Bayesian": lambda a, b: epsilon_bayesian(at_zero(a, b), delta=DELTA),
    "parametric": lambda a, b: epsilon_parametric(a, b, delta=DELTA),
    "one run": partial(guessed, epsilon_one_run),
    "one run, f-DP": partial(guessed, epsilon_one_run_fdp),
}
CREDIBLE = ("Bayesian",)
"""Limits that are above 0 by construction: the posterior gives no mass to "no leakage at all"."""


def drawn(n: int, runs: int, *, shift: float = 0.0) -> list[tuple[Scores, Scores]]:
    """Return scores of n candidates of so many runs; each is a member by its own coin."""
    rng = np.random.default_rng(n)
    sizes = rng.binomial(n, 0.5, runs).tolist()
    return [(rng.normal(shift, 1.0, m), rng.normal(0.0, 1.0, n - m)) for m in sizes]


def false_alarms(name: str, *, n: int, runs: int = 1000) -> float:
    """Return the share of runs without leakage in which a method certifies an epsilon above 0."""
    return float(np.mean([CERTIFIERS[name](*run).epsilon_low > 0 for run in drawn(n, runs)]))


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
    must = None if name in CREDIBLE else Limit(allowed(1000), at_least=False)
    return [_row(f"eps > 0 without leakage, n = {n:,}", name, false_alarms(name, n=n), must)]


def coverage_row(what: str, measure: Callable[[], float]) -> list[Result]:
    return [_row(what, "95 % interval", measure(), Limit(0.936))]


def _row(workload: str, peer: str, share: float, must: Limit | None) -> Result:
    return Result(
        id="null",
        workload=workload,
        peer=peer,
        value=share,
        low=share,
        high=share,
        unit="",
        check="1,000 runs",
        must=must,
    )


ROWS = [
    *(partial(alarm_row, name, n) for n in (100, 1000) for name in CERTIFIERS),
    *(
        partial(coverage_row, f"AUC, n = {n:,}, mu = {mu:g}", partial(auc_coverage, n=n, mu=mu))
        for n in (100, 1000)
        for mu in (0.0, 0.5, 2.0)
    ),
    *(partial(coverage_row, f"TPR at 10 % FPR, n = {n:,}", partial(tpr_coverage, n=n)) for n in (100, 1000)),
]
