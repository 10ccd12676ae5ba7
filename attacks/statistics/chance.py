"""What attacks without any skill reach on so many members and non-members: on average, and the best of some by luck."""

import math
from bisect import bisect_left
from dataclasses import dataclass

from accountant import check, normal
from attacks.statistics import best_f1, smirnov
from attacks.statistics.no_skill import no_skill_p_value, no_skill_tpr
from attacks.statistics.tpr import Rate, allowed_false_positives, exact_rate


@dataclass(frozen=True, kw_only=True)
class Chance:
    """Rates of continuous scores that know nothing; of each a mean, and a limit of the best of some attacks.

    Attributes:
        n_members, n_non_members: candidates of each kind.
        auc_limit: limit of the AUC, whose mean is 0.5; by the normal approximation of Mann and Whitney's law.
        tpr: mean true-positive rate at the false-positive rate; ``None`` where so few non-members cannot show it.
        tpr_limit: its limit, exact; the same.
        balanced_accuracy: mean of the best balanced accuracy over all thresholds.
        balanced_accuracy_limit: its limit, by Smirnov's law.
        f1: mean of the best F1.
    """

    n_members: int
    n_non_members: int
    auc_limit: float
    tpr: float | None
    tpr_limit: float | None
    balanced_accuracy: float
    balanced_accuracy_limit: float
    f1: float


def chance(
    n_members: int, n_non_members: int, *, fpr: Rate = "0.01", attacks: int = 1, level: float = 0.95
) -> Chance:
    """Return what attacks without skill reach; with probability ``level`` none exceeds a limit.

    Args:
        n_members: M, at least 1.
        n_non_members: N, at least 1.
        fpr: false-positive rate, in (0, 1).
        attacks: how many are tried, independent of each other, at least 1.
        level: in (0, 1).

    >>> found = chance(100, 100)
    >>> [round(x, 3) for x in (found.auc_limit, found.tpr, found.tpr_limit, found.balanced_accuracy)]
    [0.567, 0.02, 0.06, 0.542]
    """
    check.count(n_members=n_members, n_non_members=n_non_members, attacks=attacks)
    check.open_unit(level=level)
    m, n, one = n_members, n_non_members, level ** (1 / attacks)
    shown = exact_rate(fpr) * n >= 1
    allowed = allowed_false_positives(n, fpr=fpr)
    return Chance(
        n_members=m,
        n_non_members=n,
        auc_limit=min(1.0, 0.5 + normal.quantile(one) * math.sqrt((m + n + 1) / (12 * m * n))),
        tpr=no_skill_tpr(n, allowed=allowed) if shown else None,
        tpr_limit=_most_hits(m, n, allowed, one) / m if shown else None,
        balanced_accuracy=0.5 + smirnov.null_mean(m, n) / 2,
        balanced_accuracy_limit=0.5 + _most_excess(m, n, one) / (2 * m * n),
        f1=best_f1.null_mean(m, n)[0],
    )


def _most_hits(m: int, n: int, allowed: int, level: float) -> int:
    """Return the least number of true positives that a share ``level`` of scores does not exceed."""
    return bisect_left(
        range(m),
        True,
        key=lambda x: no_skill_p_value(x + 1, m, allowed=allowed, n_non_members=n) <= 1 - level,
    )


def _most_excess(m: int, n: int, level: float) -> int:
    """Return the least ``max_t (N TP(t) - M FP(t))`` that a share ``level`` of scores does not exceed."""
    return bisect_left(range(m * n), True, key=lambda x: smirnov.p_value(x + 1, m, n)[0] <= 1 - level)
