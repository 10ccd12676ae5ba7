"""AUC and TPR of given scores, next to the conventions that are wrong."""

import math
import re
from typing import Any

import numpy as np

from accountant.selfcheck.numbers import number
from accountant.selfcheck.privacy import NotUnderstoodError
from attacks.statistics import auc as auc_of
from attacks.statistics.advantage import max_advantage
from attacks.statistics.tpr import TprAtFpr, allowed_false_positives, tpr_at_fpr
from privkit.selfcheck.families._facts import fact, fact_at

_GROUP = re.compile(r"^\s*(\d+)\s*x\s*\(?([^()]+)\)?\s*$")


def scores(values: Any) -> np.ndarray:
    """Return scores given as a list, or as a text such as ``30x1.0,70x0.5``."""
    if isinstance(values, list):
        return np.array([math.nan if value is None else number(value) for value in values], dtype=np.float64)
    parts = [_GROUP.match(part) for part in str(values).split(",")]
    if not all(parts):
        raise NotUnderstoodError(f"the scores {values!r} are not understood")
    return np.concatenate([np.full(int(part[1]), number(part[2])) for part in parts if part])


@fact("auc")
def auc(*, member: Any, nonmember: Any) -> float | None:
    return auc_of.auc(scores(member), scores(nonmember)).value


@fact("var")
def variance(*, member: Any, nonmember: Any) -> float | None:
    return auc_of.auc_variance(scores(member), scores(nonmember))


@fact("se")
def standard_error(*, member: Any, nonmember: Any) -> float | None:
    found = variance(member=member, nonmember=nonmember)
    return None if found is None else found**0.5


@fact("ci95_logit", "ci95")
def logit_interval(*, member: Any, nonmember: Any) -> list[float | None]:
    found = auc_of.auc(scores(member), scores(nonmember))
    return [found.low, found.high]


@fact("auc_lower95", "auc_lower", "auc_lo", "lower95", "auc_lo95")
def lower_limit(*, member: Any, nonmember: Any) -> float | None:
    return auc_of.auc_lower(scores(member), scores(nonmember))


@fact("ci95_wald")
def interval_on_the_wrong_scale(*, member: Any, nonmember: Any) -> list[float]:
    """Return the interval that may leave [0, 1], which is why the logit scale is used."""
    value, half = auc(member=member, nonmember=nonmember), standard_error(member=member, nonmember=nonmember)
    if value is None or half is None:
        raise NotUnderstoodError("there is no interval of an AUC without a value")
    return [value - 1.959963984540054 * half, value + 1.959963984540054 * half]


@fact("auc_ties_as_loss")
def ties_as_loss(*, member: Any, nonmember: Any) -> float:
    return float(np.mean(scores(member)[:, None] > scores(nonmember)))


@fact("auc_ties_as_win")
def ties_as_win(*, member: Any, nonmember: Any) -> float:
    return float(np.mean(scores(member)[:, None] >= scores(nonmember)))


@fact("auc_if_flipped")
def flipped(*, member: Any, nonmember: Any) -> float | None:
    return auc_of.auc(-scores(member), -scores(nonmember)).value


@fact("max_advantage", "advantage", "adv")
def advantage(*, member: Any, nonmember: Any) -> float | None:
    return max_advantage(scores(member), scores(nonmember)).value


@fact("advantage_p", "p_value")
def advantage_p(*, member: Any, nonmember: Any) -> float | None:
    return max_advantage(scores(member), scores(nonmember)).p_value


@fact("must_warn")
def warns(*, member: Any, nonmember: Any) -> bool:
    return "direction suspect" in auc_of.auc(scores(member), scores(nonmember)).note


@fact("must")
def refuses_or_explains(*, member: Any, nonmember: Any) -> bool:
    """Return whether scores without an answer are refused by index or answered by a reason, never by a number."""
    try:
        found = auc_of.auc(scores(member), scores(nonmember))
    except ValueError as error:
        return "NaN" in str(error) or "inf" in str(error)
    return found.value is None and bool(found.note)


@fact("auc_after_drop")
def auc_after_drop(*, member: Any, nonmember: Any) -> float | None:
    kept = [values[np.isfinite(values)] for values in (scores(member), scores(nonmember))]
    return auc_of.auc(*kept).value


def _at(member: Any, nonmember: Any, fpr: float) -> TprAtFpr:
    return tpr_at_fpr(scores(member), scores(nonmember), fpr=fpr)


@fact("tpr")
def tpr(*, member: Any, nonmember: Any, alpha: float = 0.01) -> float | None:
    return _at(member, nonmember, alpha).estimate.value


@fact("realized_fp", "realised_fp", "fp")
def realised(*, member: Any, nonmember: Any, alpha: float) -> int | None:
    found = _at(member, nonmember, alpha).confusion
    return None if found is None else found.false_positives


@fact("tpr_randomised", "tpr_randomized")
def randomised(*, member: Any, nonmember: Any, alpha: float) -> float | None:
    return _at(member, nonmember, alpha).randomised


def _counted(member: Any, nonmember: Any, fpr: float) -> float | None:
    """Return the rate of the counts, also where there are too few non-members to estimate it."""
    found = _at(member, nonmember, fpr).confusion
    return None if found is None else found.tpr


@fact_at(r"tpr_at_(?:fpr_)?(\d+(?:_\d+)?)(pct)?")
def tpr_at(at: float, /, *, member: Any, nonmember: Any, alpha: float = 0.0) -> float | None:
    return _counted(member, nonmember, at)


@fact("k")
def allowed(*, pairs: list) -> list[int]:
    return [allowed_false_positives(n, fpr=alpha) for alpha, n in pairs]


@fact("naive_float_floor")
def naively_allowed(*, pairs: list) -> list[int]:
    """Return what rounding makes of the same rates."""
    return [int(alpha * n) for alpha, n in pairs]
