"""The AUC of an attack: how often a member outscores a non-member, and how sure that is."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics.area import Area, delong, obuchowski
from attacks.statistics.clusters import Clusters, number_clusters
from attacks.statistics.estimate import Estimate, empty_class
from attacks.statistics.scores import as_scores


def auc(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    level: float = 0.95,
    clusters: Clusters | None = None,
) -> Estimate:
    """Return the AUC with its interval; ties count half and the score is never flipped.

    Scores that share one release are dependent, and an interval over records misses the noise of the release:
    give their ``clusters``, or call the interval conditional on the release.

    | scores | result |
    |---|---|
    | a class is empty | no value, with the reason |
    | one record (or cluster) in a class | value without interval, unless every pair agrees |
    | every pair agrees (AUC 0 or 1, or all tied) | exact limit from Clopper-Pearson at alpha/2 per class |
    | AUC more than 3 standard errors below 0.5 | its value, and the note says the direction is suspect |

    Args:
        members: scores of members, higher = member.
        non_members: scores of non-members.
        level: confidence level of the two-sided interval, in (0, 1).
        clusters: ids per member and per non-member of the clusters that are independent of each other.

    Returns:
        Estimate in [0, 1] with no-skill value 0.5 and the p-value of "AUC is at most 0.5".

    Raises:
        ValueError: a score is not finite, or cluster ids do not fit the scores.

    Source: DeLong et al. (1988), Eq. 5; Obuchowski (1997) for clusters; logit scale: Pepe (2003).

    >>> found = auc([0.9, 0.8, 0.8, 0.6, 0.55, 0.3], [0.8, 0.5, 0.45, 0.3, 0.2, 0.1, 0.05])
    >>> [round(number, 4) for number in (found.value, found.low, found.high)]
    [0.8452, 0.4921, 0.9685]
    """
    check.open_unit(level=level)
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    m, n = len(member_M), len(non_member_N)
    reason = empty_class(m, n)
    if reason:
        return Estimate.missing(reason, n_members=m, n_non_members=n, null=0.5)
    area = _area(member_M, non_member_N, clusters)
    low, high = area.interval(level=level) if area.estimable else (None, None)
    return Estimate(
        value=area.value,
        low=low,
        high=high,
        level=level if area.estimable else None,
        kind=_kind(area),
        n_members=m,
        n_non_members=n,
        null=0.5,
        p_value=area.p_above(0.5) if area.estimable else None,
        note=_note(area, clustered=clusters is not None),
    )


def auc_variance(
    members: ArrayLike, non_members: ArrayLike, *, clusters: Clusters | None = None
) -> float | None:
    """Return the DeLong (or, with clusters, Obuchowski) variance of the AUC.

    ``None`` where a class has a single record (or cluster), or nobody.

    >>> round(auc_variance([0.9, 0.8, 0.8, 0.6, 0.55, 0.3], [0.8, 0.5, 0.45, 0.3, 0.2, 0.1, 0.05]), 6)
    0.013322
    """
    area = _area_or_none(members, non_members, clusters)
    return None if area is None else area.variance


def auc_lower(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    level: float = 0.95,
    clusters: Clusters | None = None,
) -> float | None:
    """Return the one-sided lower limit of the AUC; ``None`` where it cannot be estimated.

    For 100 members and 100 non-members without overlap:

    >>> round(auc_lower(range(100, 200), range(100)), 3)
    0.929
    """
    check.open_unit(level=level)
    area = _area_or_none(members, non_members, clusters)
    return area.lower(level=level) if area is not None and area.estimable else None


def auc_p_value(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    ceiling: float,
    clusters: Clusters | None = None,
) -> float | None:
    """Return the one-sided p-value of "the true AUC is at most the ceiling", on the logit scale.

    It is below ``alpha`` exactly when :func:`auc_lower` at level ``1 - alpha`` lies above the ceiling.

    Args:
        members: scores of members, higher = member.
        non_members: scores of non-members.
        ceiling: largest AUC the claim allows, in (0, 1]; at 1 nothing exceeds it and p is 1.
        clusters: as in :func:`auc`.

    Returns:
        Probability in [0, 1]; ``None`` where it cannot be estimated.

    >>> round(auc_p_value(range(100, 200), range(100), ceiling=0.929), 4)
    0.0503
    """
    if not 0 < ceiling <= 1:
        raise ValueError(f"ceiling={ceiling} must lie above 0 and be at most 1.")
    area = _area_or_none(members, non_members, clusters)
    return area.p_above(ceiling) if area is not None and area.estimable else None


def _area_or_none(members: ArrayLike, non_members: ArrayLike, clusters: Clusters | None) -> Area | None:
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    if empty_class(len(member_M), len(non_member_N)):
        return None
    return _area(member_M, non_member_N, clusters)


def _area(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    clusters: Clusters | None,
) -> Area:
    if clusters is None:
        return delong(member_M, non_member_N)
    return obuchowski(member_M, non_member_N, *number_clusters(clusters, len(member_M), len(non_member_N)))


def _kind(area: Area) -> str:
    if area.degenerate:
        return "exact, Clopper-Pearson at alpha/2 per class: every pair agrees"
    return f"{area.kind}, two-sided" if area.estimable else ""


def _note(area: Area, *, clustered: bool) -> str:
    if not area.estimable:
        unit = "cluster" if clustered else "record"
        return f"no interval: a class with a single {unit} does not show how much it varies"
    if area.value < 0.5 - 3 * area.standard_error:
        return (
            "score direction suspect: AUC is more than 3 standard errors below 0.5, as if the score spoke for "
            "non-members; check which direction is declared"
        )
    return ""
