"""Rows P18 and P19: the statistics that judge scores; and what they say where nothing leaks.

Peers follow the structure of what is in use: a bootstrap that sorts every resample anew, DeLong's variance by midranks.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import stats

from attacks.statistics.area import delong
from attacks.statistics.bootstrap import auc_replicates, tpr_replicates
from attacks.statistics.tpr import exact_rate
from benchmarks import correct_runs, null_runs
from benchmarks.protocol import Limit, Result, agree, cpu_seconds, ratios, spread

REPLICATES = 1000


def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(0.5, 1.0, n), rng.normal(0.0, 1.0, n)


def resampling(n: int, must: float, stretch: float, *, probes: int) -> list[Result]:
    """P18: AUC and TPR at two rates of 1,000 stratified resamples; the peer does ``probes`` of them, multiplied."""
    members, non_members = drawn(n // 2)
    rates = [exact_rate("0.01"), exact_rate("0.001")]

    def ours(seed: int = 0) -> np.ndarray:
        rng = np.random.default_rng(seed)
        found = [auc_replicates(members, non_members, rng=rng, replicates=REPLICATES)]
        found += [
            tpr_replicates(members, non_members, rate=rate, rng=rng, replicates=REPLICATES) for rate in rates
        ]
        return np.array(found)

    def theirs() -> None:
        resampled(members, non_members, replicates=probes)

    measured = [
        cpu_seconds(theirs) * REPLICATES / probes / cpu_seconds(ours) for _ in range(1 + 2 * (n < 1_000_000))
    ]
    said, void = same_spread()
    return [
        Result(
            id="P18",
            workload=f"bootstrap of n = {n:,}",
            peer="sklearn, resample by resample",
            **spread(measured),
            unit="x",
            check=said,
            void=void,
            must=Limit(must),
            stretch=Limit(stretch),
        )
    ]


def resampled(members: np.ndarray, non_members: np.ndarray, *, replicates: int) -> np.ndarray:
    """Return AUC and both TPRs of each resample, shape [3, replicates], from a ROC curve of its own."""
    from sklearn.metrics import roc_auc_score, roc_curve

    rng = np.random.default_rng(1)
    truth = np.repeat([1, 0], [len(members), len(non_members)])
    found = []
    for _ in range(replicates):
        scores = np.concatenate([rng.choice(s, len(s)) for s in (members, non_members)])
        fpr, tpr, _ = roc_curve(truth, scores, drop_intermediate=False)
        at = [tpr[np.searchsorted(fpr, rate, side="right") - 1] for rate in (0.01, 0.001)]
        found.append([roc_auc_score(truth, scores), *at])
    return np.array(found).T


def same_spread() -> tuple[str, bool]:
    """Compare standard deviations of both bootstraps on 2,000 scores, 4,000 resamples each."""
    members, non_members = drawn(1000)
    rng = np.random.default_rng(2)
    ours = [auc_replicates(members, non_members, rng=rng, replicates=4000)]
    ours += [
        tpr_replicates(members, non_members, rate=exact_rate(r), rng=rng, replicates=4000)
        for r in ("0.01", "0.001")
    ]
    theirs = resampled(members, non_members, replicates=4000)
    off = max(abs(a.std() / b.std() - 1) for a, b in zip(ours, theirs, strict=True))
    return f"standard deviations {off:.1%} apart, 5% allowed", not off <= 0.05


def variance() -> list[Result]:
    """P19: the AUC of a million scores and its variance."""
    members, non_members = drawn(500_000)
    theirs = partial(midranks, members, non_members)
    area = delong(members, non_members)
    assert area.variance is not None
    said, void = agree(area.variance, theirs()[1], rel=1e-9)
    return [
        Result(
            id="P19",
            workload="DeLong of n = 1,000,000",
            peer="midranks (rankdata)",
            **spread(ratios(lambda: delong(members, non_members), theirs, turns=3)),
            unit="x",
            check=said,
            void=void,
            must=Limit(2),
            stretch=Limit(3),
        )
    ]


def midranks(members: np.ndarray, non_members: np.ndarray) -> tuple[float, float]:
    """Return the AUC and its variance from three rankings (Sun and Xu, 2014, Algorithm 2)."""
    m, n = len(members), len(non_members)
    pooled = stats.rankdata(np.concatenate([members, non_members]))
    v10 = (pooled[:m] - stats.rankdata(members)) / n
    v01 = 1 - (pooled[m:] - stats.rankdata(non_members)) / m
    return float(v10.mean()), float(v10.var(ddof=1) / m + v01.var(ddof=1) / n)


ROWS: list[Callable[[], list[Result]]] = [
    partial(resampling, 100_000, 15, 30, probes=5),
    partial(resampling, 1_000_000, 150, 400, probes=2),
    variance,
    *null_runs.ROWS,
    *correct_runs.ROWS,
]
