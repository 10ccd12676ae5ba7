"""Bootstrap intervals, as a cross-check of the closed forms.

Members and non-members are resampled separately (stratified), or whole clusters are. Scores are sorted once;
a replicate then costs a few thousand counts for the AUC and two random numbers for the TPR, whatever n is.
"""

from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics.cluster_bootstrap import cluster_auc_replicates, cluster_tpr_replicates
from attacks.statistics.clusters import Clusters, number_clusters
from attacks.statistics.estimate import Estimate, empty_class
from attacks.statistics.placements import placements, sorted_placements
from attacks.statistics.scores import as_scores
from attacks.statistics.tpr import Rate, exact_rate, tpr_at_fpr

_BLOCKS = 2048


def bootstrap_auc(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    seed: int,
    replicates: int = 1000,
    level: float = 0.95,
    clusters: Clusters | None = None,
) -> Estimate:
    """Return the AUC with a percentile bootstrap interval.

    Args:
        members: scores of members, higher = member.
        non_members: scores of non-members.
        seed: of the resampling; the same seed gives the same interval.
        replicates: resamples, at least 1.
        level: confidence level, in (0, 1).
        clusters: resample whole clusters with these ids instead of records.

    Returns:
        Estimate; no value, with the reason, if a class is empty; no interval where resamples do not vary (full
        separation, a single cluster), for which :func:`attacks.statistics.auc.auc` has an exact limit.
    """
    member_M, non_member_N, reason = _checked(members, non_members, replicates, level)
    n = {"n_members": len(member_M), "n_non_members": len(non_member_N)}
    if reason:
        return Estimate.missing(reason, null=0.5, **n)
    rng = np.random.default_rng(seed)
    if clusters is None:
        auc_R = auc_replicates(member_M, non_member_N, rng=rng, replicates=replicates)
    else:
        ids = number_clusters(clusters, len(member_M), len(non_member_N))
        auc_R = cluster_auc_replicates(member_M, non_member_N, *ids, rng=rng, replicates=replicates)
    value = sorted_placements(np.sort(member_M), np.sort(non_member_N)).auc
    return _percentile(value, auc_R, level=level, seed=seed, clustered=clusters is not None, null=0.5, **n)


def bootstrap_tpr(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    fpr: Rate,
    seed: int,
    replicates: int = 1000,
    level: float = 0.95,
    clusters: Clusters | None = None,
) -> Estimate:
    """Return the TPR at a false-positive rate with a percentile bootstrap interval.

    Unlike the interval of :func:`attacks.statistics.tpr.tpr_at_fpr` it includes the noise of the threshold.
    Arguments as in :func:`bootstrap_auc`; ``fpr`` as in :func:`attacks.statistics.tpr.exact_rate`.
    """
    member_M, non_member_N, reason = _checked(members, non_members, replicates, level)
    rate = exact_rate(fpr)
    point = tpr_at_fpr(member_M, non_member_N, fpr=rate, level=level).estimate
    if reason or point.value is None:
        return point
    rng = np.random.default_rng(seed)
    if clusters is None:
        tpr_R = tpr_replicates(member_M, non_member_N, rate=rate, rng=rng, replicates=replicates)
    else:
        ids = number_clusters(clusters, len(member_M), len(non_member_N))
        tpr_R = cluster_tpr_replicates(
            member_M, non_member_N, *ids, rate=rate, rng=rng, replicates=replicates
        )
    return _percentile(
        point.value,
        tpr_R,
        level=level,
        seed=seed,
        clustered=clusters is not None,
        null=point.null,
        n_members=len(member_M),
        n_non_members=len(non_member_N),
    )


def auc_replicates(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    *,
    rng: np.random.Generator,
    replicates: int,
) -> Float[np.ndarray, " R"]:
    """Return the AUC of stratified resamples.

    Scores are cut into at most 2048 blocks that never split a tie, and a replicate draws how often each block
    is hit. With as many blocks as distinct scores this is the ordinary bootstrap; with more scores the pairs
    inside a block, less than one in 2048, keep their average, which changes the standard deviation by about
    as little.
    """
    block_M, block_N, inside_B = _blocks(member_M, non_member_N)
    m, n = len(member_M), len(non_member_N)
    m_RB = rng.multinomial(m, np.bincount(block_M, minlength=len(inside_B)) / m, size=replicates)
    n_RB = rng.multinomial(n, np.bincount(block_N, minlength=len(inside_B)) / n, size=replicates)
    below_RB = np.cumsum(n_RB, axis=1) - n_RB
    wins_R = np.einsum("rb,rb->r", m_RB, below_RB + inside_B * n_RB)
    return wins_R / (m * n)


def tpr_replicates(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    *,
    rate: Fraction,
    rng: np.random.Generator,
    replicates: int,
) -> Float[np.ndarray, " R"]:
    """Return the TPR of stratified resamples at a false-positive rate; exact, two draws per replicate.

    The (k+1)-th largest of N uniform draws from the sorted non-members has rank ``floor(N Beta(k+1, N-k))``;
    above it lie a binomial number of resampled members.
    """
    m, n = len(member_M), len(non_member_N)
    allowed = int(rate * n)
    if allowed >= n:
        return np.ones(replicates)
    rank_R = np.minimum((n * rng.beta(allowed + 1, n - allowed, size=replicates)).astype(np.int64), n - 1)
    threshold_R = np.sort(non_member_N)[::-1][rank_R]
    above_R = m - np.searchsorted(np.sort(member_M), threshold_R, side="right")
    return rng.binomial(m, above_R / m) / m


def _blocks(
    member_M: Float[np.ndarray, " M"], non_member_N: Float[np.ndarray, " N"]
) -> tuple[Int[np.ndarray, " M"], Int[np.ndarray, " N"], Float[np.ndarray, " B"]]:
    """Return the block of every score and, per block, the share of its own pairs that the member wins."""
    member, non_member = np.sort(member_M), np.sort(non_member_N)
    edges = np.unique(np.concatenate([member, non_member]))
    if len(edges) > _BLOCKS:
        edges = edges[np.linspace(0, len(edges) - 1, _BLOCKS).astype(np.int64)]
    block_M = np.searchsorted(edges, member, side="right") - 1
    block_N = np.searchsorted(edges, non_member, side="right") - 1
    in_block_B = np.bincount(block_N, minlength=len(edges))
    members_B = np.bincount(block_M, minlength=len(edges))
    wins_M = (
        placements(member, non_member).v10_M * len(non_member) - (np.cumsum(in_block_B) - in_block_B)[block_M]
    )
    wins_B = np.bincount(block_M, wins_M, minlength=len(edges))
    return block_M, block_N, wins_B / np.maximum(members_B * in_block_B, 1)


def _checked(
    members: ArrayLike, non_members: ArrayLike, replicates: int, level: float
) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " N"], str]:
    check.count(replicates=replicates)
    check.open_unit(level=level)
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    return member_M, non_member_N, empty_class(len(member_M), len(non_member_N))


def _percentile(
    value: float,
    replicate_R: Float[np.ndarray, " R"],
    *,
    level: float,
    seed: int,
    clustered: bool,
    null: float | None,
    n_members: int,
    n_non_members: int,
) -> Estimate:
    low, high = np.quantile(replicate_R, [(1 - level) / 2, (1 + level) / 2])
    flat = bool(low == high)
    unit = "cluster" if clustered else "stratified"
    return Estimate(
        value=value,
        low=None if flat else float(low),
        high=None if flat else float(high),
        level=None if flat else level,
        kind=f"{unit} bootstrap, percentile, {len(replicate_R)} replicates, seed {seed}",
        n_members=n_members,
        n_non_members=n_non_members,
        null=null,
        note="no interval: resamples of these scores do not vary" if flat else "",
    )
