"""Lower limits on epsilon."""

import math

from attacks.statistics.certify import (
    epsilon_bayesian,
    epsilon_clopper_pearson,
    epsilon_one_run,
    epsilon_one_run_fdp,
    one_run_p_value,
)
from attacks.statistics.confusion import Confusion
from privkit.selfcheck.families._facts import fact
from privkit.selfcheck.families._tables import table


def point(tp: int, m: int, fp: int, n: int) -> Confusion:
    """Return counts at a threshold that was fixed beforehand."""
    return Confusion(
        true_positives=tp,
        n_members=m,
        false_positives=fp,
        n_non_members=n,
        threshold_source="fixed beforehand",
    )


@table("eps_lower_clopper_pearson", answers=3)
def clopper_pearson(tp: int, m: int, fp: int, n: int, /, *, delta: float, alpha: float = 0.05) -> list[float]:
    """Return epsilon from TPR over FPR, from TNR over FNR, and the better of both."""
    counts = point(tp, m, fp, n)
    tpr_low, fpr_up = counts.worst_rates(alpha=alpha)
    sides = [_log_ratio(tpr_low - delta, fpr_up), _log_ratio(1 - fpr_up - delta, 1 - tpr_low)]
    return [*sides, epsilon_clopper_pearson(counts, delta=float(delta), level=1 - alpha).epsilon_low]


def _log_ratio(above: float, below: float) -> float:
    return max(0.0, math.log(above / below)) if above > 0 else 0.0


@fact("eps")
def most_that_trials_can_show(*, N: list, delta: float = 0.0, alpha: float = 0.05) -> list[float]:
    return [
        epsilon_clopper_pearson(point(n, n, 0, n), delta=float(delta), level=1 - alpha).epsilon_low for n in N
    ]


@table("eps_one_run_steinke", answers=2)
def one_run(canaries: int, guesses: int, correct: int, delta: float, /, *, conf: float) -> list[float]:
    run = {"canaries": canaries, "guesses": guesses, "correct": correct, "delta": float(delta)}
    return [epsilon_one_run(**run, level=conf).epsilon_low, one_run_p_value(**run, epsilon=0.5)]


@table("eps_one_run_fdp", answers=2)
def one_run_gaussian(
    canaries: int, correct: int, guesses: int, /, *, delta: float, conf: float
) -> list[float | None]:
    found = epsilon_one_run_fdp(canaries=canaries, guesses=guesses, correct=correct, delta=delta, level=conf)
    return [found.mu_low, found.epsilon_low]


@table("eps_bayesian", answers=1)
def bayesian(tp: int, m: int, fp: int, n: int, /, *, delta: float, conf: float) -> list[float]:
    return [epsilon_bayesian(point(tp, m, fp, n), delta=delta, level=conf).epsilon_low]
