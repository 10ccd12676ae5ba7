"""First-neighbour clustering: every vector is joined to the one nearest in direction; what hangs together is a cluster.

The clusters of a pass are joined by their means in the next. Distances are cosine, in float64, and rounded to where
equal vectors are equally near: of equally near ones the first counts, so the result does not hang on rounding.

Source: Sarfraz, Sharma and Stiefelhagen (2019), "Efficient parameter-free clustering using first neighbor relations",
Eq. 1 and Algorithm 1. The rule for stopping is that of the authors' code (PyPI ``finch-clust`` 0.2.3).
"""

import numpy as np
from jaxtyping import Float64, Int64

from privkit.clip import unit

_AT_ONCE = 2**22  # cosines that are held together
_DIGITS = 12


def partitions(
    vectors_Nd: Float64[np.ndarray, "N d"], *, early_exit: bool = False
) -> list[Int64[np.ndarray, " N"]]:
    """Return the cluster of each vector in every partition, the finest first; numbered from 0 in order of appearance.

    Passes end before one that leaves a single cluster, or only one fewer than there were.

    Args:
        vectors_Nd: at least one; zeros are as far from everything as a right angle.
        early_exit: whether no pass but the first may join what is further apart than any vector was from its first
            neighbour.

    >>> [p.tolist() for p in partitions(np.array([[9.0, 1], [9, 2], [1, 9], [2, 9]]))]
    [[0, 0, 1, 1]]
    """
    nearest_N, distance_N = _first_neighbours(vectors_Nd)
    found = [_joined(nearest_N, np.ones(len(vectors_Nd), dtype=bool))]
    furthest = distance_N.max() if early_exit else np.inf
    while True:
        nearest_K, distance_K = _first_neighbours(means(vectors_Nd, found[-1]))
        joined_K = _joined(nearest_K, distance_K <= furthest)
        clusters = joined_K.max() + 1
        if clusters == 1 or len(joined_K) - clusters <= 1:
            return found
        found.append(joined_K[found[-1]])


def means(
    vectors_Nd: Float64[np.ndarray, "N d"], cluster_N: Int64[np.ndarray, " N"]
) -> Float64[np.ndarray, "K d"]:
    """Return the mean of each cluster; clusters are numbered from 0 without gaps."""
    counts_K = np.bincount(cluster_N)
    total_Kd = np.zeros((len(counts_K), vectors_Nd.shape[1]))
    np.add.at(total_Kd, cluster_N, vectors_Nd)
    return total_Kd / counts_K[:, None]


def _first_neighbours(
    vectors_Nd: Float64[np.ndarray, "N d"],
) -> tuple[Int64[np.ndarray, " N"], Float64[np.ndarray, " N"]]:
    """Return the other vector that is nearest to each, and how far it is; a single one has itself."""
    unit_Nd, n = unit(vectors_Nd), len(vectors_Nd)
    nearest_N, cosine_N = np.zeros(n, dtype=np.int64), np.full(n, -np.inf)
    rows = max(1, _AT_ONCE // n)
    for start in range(0, n, rows):
        cosine_bN = unit_Nd[start : start + rows] @ unit_Nd.T
        np.round(cosine_bN, _DIGITS, out=cosine_bN)
        here_b = np.arange(len(cosine_bN))
        cosine_bN[here_b, start + here_b] = -np.inf
        nearest_N[start : start + rows] = cosine_bN.argmax(1)
        cosine_N[start : start + rows] = cosine_bN.max(1)
    return nearest_N, 1.0 - cosine_N


def _joined(nearest_N: Int64[np.ndarray, " N"], kept_N: np.ndarray) -> Int64[np.ndarray, " N"]:
    """Return the connected part that each vector is in, when the edges that are kept are drawn."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # an edge left out has to be absent: one of weight 0 still connects
    here = np.flatnonzero(kept_N)
    edges = coo_array((np.ones(len(here)), (here, nearest_N[here])), shape=(len(nearest_N),) * 2)
    return connected_components(edges, directed=False)[1].astype(np.int64)
