"""Exact limits of a proportion."""

from attacks.statistics.binomial import clopper_pearson, lower_limit, min_n_for_fpr, upper_limit
from privkit.selfcheck.families._facts import fact_at
from privkit.selfcheck.families._tables import table


@table("clopper_pearson", answers=4)
def limits(successes: int, trials: int, /, *, conf: float = 0.95) -> list[float]:
    low, high = clopper_pearson(successes, trials, level=conf)
    return [low, high, lower_limit(successes, trials, level=conf), upper_limit(successes, trials, level=conf)]


@fact_at(r"alpha_(\d+(?:_\d+)?)(pct)")
def fewest_non_members(at: float, /, *, conf: float) -> int:
    return min_n_for_fpr(at, level=conf)
