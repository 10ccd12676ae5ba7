"""Which scores depend on each other, and how much less they show together than each would alone."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

Clusters = tuple[ArrayLike, ArrayLike]
"""Cluster ids of the members and of the non-members: equal ids share a release, a user or a client."""


def number_clusters(
    clusters: Clusters, n_members: int, n_non_members: int
) -> tuple[Int[np.ndarray, " M"], Int[np.ndarray, " N"]]:
    """Return cluster ids as numbers from 0 without gaps, the same number for the same id in both classes."""
    ids = [np.asarray(part) for part in clusters]
    for name, part, n in zip(("members", "non_members"), ids, (n_members, n_non_members), strict=True):
        if part.shape != (n,):
            raise ValueError(f"cluster ids of {name} have shape {part.shape}; give {n}, one per score.")
        if part.dtype.kind == "f" and np.isnan(part).any():
            raise ValueError(f"a cluster id of {name} is NaN; give every score a cluster.")
    if (ids[0].dtype.kind in "iuf") != (ids[1].dtype.kind in "iuf"):
        raise ValueError(
            "cluster ids of members and non_members differ in kind; give numbers or texts in both."
        )
    numbers = np.unique(np.concatenate(ids), return_inverse=True)[1]
    return numbers[:n_members], numbers[n_members:]


class ClusteredVariance(NamedTuple):
    """The variance of an AUC, or of a difference of two, over independent clusters.

    Attributes:
        variance: ``None`` where a class has a single cluster, which cannot show any.
        with_member: clusters that hold a member.
        with_non_member: clusters that hold a non-member.
        clusters: in all.
    """

    variance: float | None
    with_member: int
    with_non_member: int
    clusters: int

    @property
    def degrees(self) -> int:
        """Return the degrees of freedom: one less than the smaller number of clusters."""
        return min(self.with_member, self.with_non_member) - 1


_ROUNDING = 1e-12


def clustered_variance(
    of_member_M: Float[np.ndarray, " M"],
    of_non_member_N: Float[np.ndarray, " N"],
    member_cluster_M: Int[np.ndarray, " M"],
    non_member_cluster_N: Int[np.ndarray, " N"],
) -> ClusteredVariance:
    """Return the variance of a sum of placements; clusters are independent, records inside one are not.

    Args:
        of_member_M: what each member adds to the number, minus the mean over members.
        of_non_member_N: likewise.
        member_cluster_M: cluster of each member, numbered without gaps.
        non_member_cluster_N: of each non-member.

    Source: Obuchowski (1997), Biometrics 53, p. 570.
    """
    count = int(max(member_cluster_M.max(), non_member_cluster_N.max())) + 1
    x = np.bincount(member_cluster_M, of_member_M, count)
    y = np.bincount(non_member_cluster_N, of_non_member_N, count)
    k, n = len(np.unique(member_cluster_M)), len(np.unique(non_member_cluster_N))
    if min(k, n) < 2:
        return ClusteredVariance(None, k, n, count)
    parts = ((k, x @ x), (n, y @ y), (count, 2 * (x @ y)))
    variance = float(sum(size / (size - 1) * part for size, part in parts))
    if variance <= _ROUNDING * float(x @ x + y @ y):  # members and non-members of each cluster cancel
        variance = 0.0
    return ClusteredVariance(variance, k, n, count)
