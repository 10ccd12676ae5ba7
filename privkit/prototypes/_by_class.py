"""Dividing the records of each class by itself."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int64


def divided_by_class(
    vectors_Nd: Float64[np.ndarray, "N d"],
    labels_N: Int64[np.ndarray, " N"],
    divide: Callable[[Float64[np.ndarray, "n d"], int], Int64[np.ndarray, " n"]],
) -> Int64[np.ndarray, " N"]:
    """Return the cluster of each record within its class.

    Args:
        vectors_Nd: of the records.
        labels_N: class of each.
        divide: takes the vectors of one class and the class, and returns the cluster of each, from 0 without gaps.
    """
    cluster_N = np.zeros(len(labels_N), dtype=np.int64)
    for label in np.unique(labels_N).tolist():
        mine_N = labels_N == label
        cluster_N[mine_N] = divide(vectors_Nd[mine_N], label)
    return cluster_N
