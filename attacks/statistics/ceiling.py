"""Tests of an attack against the ceiling that a claim puts on every attack."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from attacks.statistics.auc import auc, auc_p_value
from attacks.statistics.certify.clopper_pearson import FIXED_THRESHOLD, INDEPENDENT_TRIALS
from attacks.statistics.clusters import Clusters
from attacks.statistics.confusion import Confusion
from attacks.statistics.search import last_true

_SMALLEST_LOG = 690.0


@runtime_checkable
class TradeOffCurve(Protocol):
    """What a claim allows: the largest TPR of any attack, ``1 - f(FPR)``."""

    def tpr(self, fpr: float, /) -> float:
        """Return the largest true-positive rate at one false-positive rate, both in [0, 1]."""
        ...


@dataclass(frozen=True, kw_only=True)
class CeilingTest:
    """One number of an attack next to the ceiling of the claim.

    Attributes:
        statistic: what was measured, such as "AUC" or "TPR".
        value: what the attack reached; ``None`` if not estimable, and then :attr:`note` is the reason.
        ceiling: what the claim allows on average.
        p_value: one-sided, of "the truth is at most the ceiling"; ``None`` if not tested.
        assumptions: what must be true for the p-value to hold, in words.
        note: the reason for a missing value, or what a reader must know.
    """

    statistic: str
    value: float | None
    ceiling: float
    p_value: float | None
    assumptions: tuple[str, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {**asdict(self), "assumptions": list(self.assumptions)}


def auc_above(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    ceiling: float,
    clusters: Clusters | None = None,
) -> CeilingTest:
    """Return the test of "the AUC is at most the ceiling".

    Args:
        members: scores of members, higher = member.
        non_members: scores of non-members.
        ceiling: largest AUC the claim allows, in (0, 1].
        clusters: ids of clusters that are independent of each other, as in
            :func:`attacks.statistics.auc.auc`.

    >>> auc_above([3, 4, 5, 6], [1, 2, 3.5, 4.5], ceiling=0.6).p_value < 0.5
    True
    """
    found = auc(members, non_members, clusters=clusters)
    unit = "clusters are independent of each other" if clusters else "records are independent of each other"
    return CeilingTest(
        statistic="AUC",
        value=found.value,
        ceiling=ceiling,
        p_value=auc_p_value(members, non_members, ceiling=ceiling, clusters=clusters),
        assumptions=(unit,),
        note=found.note,
    )


def tpr_above(point: Confusion, *, curve: TradeOffCurve) -> CeilingTest:
    """Return the test of "the rates at this threshold lie under the trade-off curve".

    The p-value is the smallest alpha at which the Clopper-Pearson limits, alpha/2 for each rate, leave the
    region: ``TPR_low > curve.tpr(FPR_up)``. Valid for any curve, hence for any mechanism, not only Gaussian
    ones.

    Args:
        point: counts at a threshold that was fixed without looking at these scores.
        curve: what the claim allows, symmetric in its two hypotheses and not decreasing in FPR.

    Returns:
        Test whose p-value is at least about 1e-300.
    """

    def refuted(minus_log_alpha: float) -> bool:
        if minus_log_alpha > _SMALLEST_LOG:
            return False
        tpr_low, fpr_up = point.worst_rates(alpha=math.exp(-minus_log_alpha))
        return tpr_low > float(curve.tpr(fpr_up))

    return CeilingTest(
        statistic="TPR",
        value=point.tpr,
        ceiling=float(curve.tpr(point.fpr)),
        p_value=math.exp(-last_true(refuted, 1e-12, 10.0)),
        assumptions=(INDEPENDENT_TRIALS, FIXED_THRESHOLD),
        note=f"{point}, threshold from {point.threshold_source}",
    )
