"""Two attacks, one question: the difference of their AUCs, and whether it is more than noise."""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import special

from accountant import check
from attacks.statistics.area import Area
from attacks.statistics.clusters import Clusters, clustered_variance, number_clusters
from attacks.statistics.estimate import empty_class
from attacks.statistics.placements import placements
from attacks.statistics.scores import as_scores

Classes = tuple[ArrayLike, ArrayLike]
"""Scores of the members and of the non-members, higher = member."""


@dataclass(frozen=True, kw_only=True)
class AreaDifference:
    """The AUC of one attack minus that of another.

    Attributes:
        value: in [-1, 1]; ``None`` where it cannot be estimated, and then :attr:`note` is the reason.
        low: lower end of the two-sided interval, in [-1, 1]; ``None`` where there is none.
        high: upper end.
        level: confidence level of the interval; ``None`` where there is none.
        p_value: two-sided, of "both AUCs are the same"; ``None`` where it cannot be tested.
        kind: how the variance was made, in words.
        note: what a reader must know; may be empty.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p_value: float | None = None
    kind: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


class _Spread(NamedTuple):
    """Variance of a difference, ``None`` where nothing shows it, and the degrees of freedom of that variance."""

    variance: float | None
    degrees: float
    kind: str


def paired_difference(
    first: Classes, second: Classes, *, level: float = 0.95, clusters: Clusters | None = None
) -> AreaDifference:
    r"""Return the difference of two AUCs on the same candidates, both lists in the same order.

    .. math:: \hat\theta_1 - \hat\theta_2, \quad
       \widehat{var} = L (S_{10} / M + S_{01} / N) L^T, \quad L = (1, -1)

    The covariance of two attacks on the same candidates is in the variance of the differences of their placements,
    which is the same number as the quadratic form.

    | scores | result |
    |---|---|
    | a class is empty | no value, with the reason |
    | one record (or cluster) in a class | value, no test |
    | both order every pair alike | 0, p = 1, no interval |
    | differences do not vary, and are not 0 | value, no test |
    | one AUC is 0 or 1 | value and test from the variance of the other; the note says so |

    Args:
        first: scores of one attack.
        second: scores of the other, of the same candidates.
        level: confidence level of the two-sided interval, in (0, 1).
        clusters: ids of what candidates share, such as a release; then clusters, not records, are independent.

    Raises:
        ValueError: the attacks did not score as many candidates, a score is not finite, or cluster ids do not fit.

    Source: DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44, Eq. 5-8; Obuchowski (1997), Biometrics 53, p. 570,
    for clusters.

    >>> found = paired_difference(([3, 4, 5, 6], [1, 2, 3.5, 4.5]), ([3, 2, 5, 1], [1, 4, 2.5, 4.5]))
    >>> round(found.value, 4), round(found.p_value, 3)
    (0.3438, 0.176)
    """
    check.open_unit(level=level)
    first_M, first_N = _scores(first, "first")
    second_M, second_N = _scores(second, "second")
    m, n = len(first_M), len(first_N)
    if (m, n) != (len(second_M), len(second_N)):
        raise ValueError(
            f"first scores {m} members and {n} non-members, second {len(second_M)} and {len(second_N)}; give scores of "
            "the same candidates, or compare the AUCs with unpaired_difference."
        )
    reason = empty_class(m, n)
    if reason:
        return AreaDifference(value=None, note=reason)
    one, other = placements(first_M, first_N), placements(second_M, second_N)
    # twice the placements are whole numbers of pairs: differences that do not vary must have variance 0
    twice_M = np.rint(2 * n * one.v10_M) - np.rint(2 * n * other.v10_M)
    twice_N = np.rint(2 * m * one.v01_N) - np.rint(2 * m * other.v01_N)
    spread = (
        _independent(twice_M, twice_N)
        if clusters is None
        else _clustered(twice_M, twice_N, *number_clusters(clusters, m, n))
    )
    value = float(twice_M.sum()) / (2 * m * n)
    return _difference(value, spread, level, aucs=(one.auc, other.auc))


def unpaired_difference(first: Area, second: Area, *, level: float = 0.95) -> AreaDifference:
    """Return the difference of two AUCs on different candidates: their variances add up.

    Args:
        first: an AUC with its variance, from :func:`attacks.statistics.area.delong` or ``obuchowski``.
        second: the other.
        level: confidence level of the two-sided interval, in (0, 1).

    Source: Hanley and McNeil (1982), Radiology 143, p. 33, without their correlation.
    """
    check.open_unit(level=level)
    variances = [0.0 if area.degenerate else area.variance for area in (first, second)]
    known = [variance for variance in variances if variance is not None]
    spread = _Spread(
        math.fsum(known) if len(known) == len(variances) else None,
        min(first.degrees, second.degrees),
        "unpaired: the variances of the AUCs add up",
    )
    value = first.value - second.value
    return _difference(value, spread, level, aucs=(first.value, second.value))


def _scores(classes: Classes, name: str) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " N"]]:
    members, non_members = classes
    return (
        as_scores(members, name=f"members of the {name}"),
        as_scores(non_members, name=f"non_members of the {name}"),
    )


def _independent(twice_M: Float[np.ndarray, " M"], twice_N: Float[np.ndarray, " N"]) -> _Spread:
    """Return the variance for independent records; a difference of a member's placement is ``twice_M / (2 N)``."""
    m, n = len(twice_M), len(twice_N)
    variance = None
    if min(m, n) > 1:
        of_members = float(twice_M.var(ddof=1)) / (2 * n) ** 2 / m
        of_non_members = float(twice_N.var(ddof=1)) / (2 * m) ** 2 / n
        variance = of_members + of_non_members
    return _Spread(variance, math.inf, "paired DeLong")


def _clustered(
    twice_M: Float[np.ndarray, " M"],
    twice_N: Float[np.ndarray, " N"],
    member_cluster_M: Int[np.ndarray, " M"],
    non_member_cluster_N: Int[np.ndarray, " N"],
) -> _Spread:
    """Return the variance where clusters are independent, records inside one are not."""
    scale = 2 * len(twice_M) * len(twice_N)
    found = clustered_variance(
        (twice_M - twice_M.mean()) / scale,
        (twice_N - twice_N.mean()) / scale,
        member_cluster_M,
        non_member_cluster_N,
    )
    kind = f"paired DeLong over {found.clusters} clusters, t with {found.degrees} df"
    return _Spread(found.variance, float(found.degrees), kind)


def _difference(value: float, spread: _Spread, level: float, *, aucs: tuple[float, float]) -> AreaDifference:
    if spread.variance is None:
        note = "not tested: a class with a single independent unit does not show how much it varies"
        return AreaDifference(value=value, kind=spread.kind, note=note)
    if spread.variance == 0:
        note = "no interval: the difference does not vary from candidate to candidate"
        return AreaDifference(value=value, p_value=None if value else 1.0, kind=spread.kind, note=note)
    error = math.sqrt(spread.variance)
    reach = _quantile((1 + level) / 2, spread.degrees) * error
    certain = any(auc in (0.0, 1.0) for auc in aucs)
    return AreaDifference(
        value=value,
        low=max(-1.0, value - reach),
        high=min(1.0, value + reach),
        level=level,
        p_value=min(1.0, 2 * _tail(abs(value) / error, spread.degrees)),
        kind=f"{spread.kind}, two-sided",
        note="one AUC is 0 or 1 and shows no variance of its own; that of the other is used"
        if certain
        else "",
    )


def _quantile(level: float, degrees: float) -> float:
    return float(special.ndtri(level) if math.isinf(degrees) else special.stdtrit(degrees, level))


def _tail(excess: float, degrees: float) -> float:
    return float(special.ndtr(-excess) if math.isinf(degrees) else special.stdtr(degrees, -excess))
