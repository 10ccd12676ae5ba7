"""Bootstrap of whole clusters: releases, users or clients are drawn, and bring all of their scores along."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int


def cluster_auc_replicates(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    member_cluster_M: Int[np.ndarray, " M"],
    non_member_cluster_N: Int[np.ndarray, " N"],
    *,
    rng: np.random.Generator,
    replicates: int,
) -> Float[np.ndarray, " R"]:
    """Return the AUC of resamples of clusters; O(n) per replicate."""
    resampled = _resampled_blocks(
        member_M, non_member_N, member_cluster_M, non_member_cluster_N, rng, replicates
    )
    return np.array([_auc(members_B, non_members_B) for members_B, non_members_B in resampled])


def cluster_tpr_replicates(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    member_cluster_M: Int[np.ndarray, " M"],
    non_member_cluster_N: Int[np.ndarray, " N"],
    *,
    rate: Fraction,
    rng: np.random.Generator,
    replicates: int,
) -> Float[np.ndarray, " R"]:
    """Return the TPR at a false-positive rate of resamples of clusters; O(n) per replicate."""
    resampled = _resampled_blocks(
        member_M, non_member_N, member_cluster_M, non_member_cluster_N, rng, replicates
    )
    return np.array([_tpr(members_B, non_members_B, rate) for members_B, non_members_B in resampled])


def _resampled_blocks(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    member_cluster_M: Int[np.ndarray, " M"],
    non_member_cluster_N: Int[np.ndarray, " N"],
    rng: np.random.Generator,
    replicates: int,
) -> Iterator[tuple[Float[np.ndarray, " B"], Float[np.ndarray, " B"]]]:
    """Yield, per replicate, how many members and non-members fall on each distinct score, lowest first."""
    pooled = np.concatenate([member_M, non_member_N])
    order = np.argsort(pooled, kind="stable")
    starts = np.flatnonzero(np.diff(pooled[order], prepend=-np.inf))
    cluster = np.concatenate([member_cluster_M, non_member_cluster_N])[order]
    is_member = order < len(member_M)
    strata = _strata(member_cluster_M, non_member_cluster_N)
    weight_C = np.zeros(cluster.max() + 1)
    for _ in range(replicates):
        for ids in strata:
            weight_C[ids] = rng.multinomial(len(ids), np.full(len(ids), 1 / len(ids)))
        weight = weight_C[cluster]
        yield (
            np.add.reduceat(np.where(is_member, weight, 0.0), starts),
            np.add.reduceat(np.where(is_member, 0.0, weight), starts),
        )


def _strata(
    member_cluster_M: Int[np.ndarray, " M"], non_member_cluster_N: Int[np.ndarray, " N"]
) -> list[Int[np.ndarray, " C"]]:
    """Return the clusters with both classes, only members, only non-members: no kind may vanish."""
    kinds = (
        np.intersect1d(member_cluster_M, non_member_cluster_N),
        np.setdiff1d(member_cluster_M, non_member_cluster_N),
        np.setdiff1d(non_member_cluster_N, member_cluster_M),
    )
    return [ids for ids in kinds if len(ids)]


def _auc(members_B: Float[np.ndarray, " B"], non_members_B: Float[np.ndarray, " B"]) -> float:
    below_B = np.cumsum(non_members_B) - non_members_B
    return float(members_B @ (below_B + non_members_B / 2) / (members_B.sum() * non_members_B.sum()))


def _tpr(members_B: Float[np.ndarray, " B"], non_members_B: Float[np.ndarray, " B"], rate: Fraction) -> float:
    total = non_members_B.sum()
    flagged_from_B = total - (np.cumsum(non_members_B) - non_members_B)
    within = flagged_from_B <= int(rate * int(total))
    return float(members_B[within].sum() / members_B.sum())
