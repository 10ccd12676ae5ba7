"""What a score without any skill reaches."""

import math

from attacks.statistics import smirnov
from attacks.statistics.no_skill import no_skill_p_value, no_skill_tpr
from attacks.statistics.tpr import allowed_false_positives
from privkit.selfcheck.families._facts import fact
from privkit.selfcheck.families._tables import table


@table("tpr_at_fpr_null_mean", answers=3)
def null_mean(n_non_members: int, alpha: float, /) -> list[float | int]:
    allowed = allowed_false_positives(n_non_members, fpr=alpha)
    mean = no_skill_tpr(n_non_members, allowed=allowed)
    return [allowed, mean, mean / alpha]


@fact("p")
def p_values(*, cases: list) -> list[float]:
    return [no_skill_p_value(tp, m, allowed=k, n_non_members=n) for m, n, k, tp in cases]


@table("advantage_null_mean", answers=2)
def advantages_of_no_skill(n: int, /) -> list[float]:
    """Return the mean of the largest TPR - FPR, and of its largest absolute value."""
    return [smirnov.null_mean(n, n), _absolute_null_mean(n)]


@fact("mean", "null_mean", "mean_advantage")
def advantage_null_means(*, n: list) -> list[float]:
    return [smirnov.null_mean(size, size) for size in n]


@fact("mean_abs", "abs_mean", "mean_abs_advantage")
def absolute_null_means(*, n: list) -> list[float]:
    return [_absolute_null_mean(size) for size in n]


def _absolute_null_mean(n: int) -> float:
    """Return the mean of Kolmogorov and Smirnov's two-sided statistic of n against n (reflection principle)."""
    chances = (
        2 * sum((-1) ** (i + 1) * _ways(n, i * j) for i in range(1, n // j + 1)) for j in range(1, n + 1)
    )
    return min(math.fsum(chances), float(n)) / n


def _ways(n: int, away: int) -> float:
    """Return the share of paths of n against n that end ``2 away`` from where they began."""
    return math.exp(2 * math.lgamma(n + 1) - math.lgamma(n - away + 1) - math.lgamma(n + away + 1))
