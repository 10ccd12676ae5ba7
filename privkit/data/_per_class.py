"""The first records of every class."""

import numpy as np
from jaxtyping import Int64


def first_of_each_class(labels: Int64[np.ndarray, " N"], per_class: int) -> Int64[np.ndarray, " kept"]:
    """Return, in ascending order, the places of the first ``per_class`` records of every class.

    >>> first_of_each_class(np.array([3, 3, 5, 3, 5]), 2)
    array([0, 1, 2, 4])
    """
    by_class = [np.flatnonzero(labels == label)[:per_class] for label in np.unique(labels)]
    return np.sort(np.concatenate(by_class))
