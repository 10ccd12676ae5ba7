"""Which scores depend on each other."""

import numpy as np
from jaxtyping import Int
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
