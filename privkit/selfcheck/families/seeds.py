"""One number over several seeds."""

import numpy as np

from attacks.statistics.seeds import OverSeeds, over_seeds
from privkit.selfcheck.families._facts import fact


def _over(values: list) -> OverSeeds:
    return over_seeds([None if value is None else float(value) for value in values])


@fact("mean")
def mean(*, auc: list) -> float | None:
    return _over(auc).mean


@fact("std")
def std(*, auc: list) -> float | None:
    return _over(auc).std


@fact("std_wrong_ddof0")
def std_of_a_population(*, auc: list) -> float:
    """Return the spread as if the seeds were all there are."""
    return float(np.std(auc))


@fact("se")
def standard_error(*, auc: list) -> float | None:
    return _over(auc).se


@fact("ci95")
def interval(*, auc: list) -> list[float | None]:
    found = _over(auc)
    return [found.low, found.high]
