"""What a score without any skill reaches."""

from attacks.statistics import smirnov
from attacks.statistics.no_skill import no_skill_p_value, no_skill_tpr
from attacks.statistics.tpr import allowed_false_positives
from privkit.selfcheck.families._registry import fact, table


@table("tpr_at_fpr_null_mean", answers=3)
def null_mean(n_non_members: int, alpha: float, /) -> list[float | int]:
    allowed = allowed_false_positives(n_non_members, fpr=alpha)
    mean = no_skill_tpr(n_non_members, allowed=allowed)
    return [allowed, mean, mean / alpha]


@fact("p")
def p_values(*, cases: list) -> list[float]:
    return [no_skill_p_value(tp, m, allowed=k, n_non_members=n) for m, n, k, tp in cases]


@table("advantage_null_mean", answers=1)
def advantage_null_mean(n_members: int, n_non_members: int, /) -> list[float]:
    return [smirnov.null_mean(n_members, n_non_members)]


@fact("advantage_null_mean", "null_mean", "mean_advantage")
def advantage_null_means(*, n: list) -> list[float]:
    return [smirnov.null_mean(size, size) for size in n]
