"""The mean of each class: what every prototype defense is built from."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from privkit.clip import clip_to_ball
from privkit.embeddings import Embeddings
from privkit.errors import InputError


class ClassMeans(NamedTuple):
    """The mean vector of each class that is present.

    Attributes:
        vectors: shape [P, d].
        labels: ascending, shape [P].
        counts: records in each mean, shape [P].
    """

    vectors: Float64[np.ndarray, "P d"]
    labels: Int64[np.ndarray, " P"]
    counts: Int64[np.ndarray, " P"]


def class_means(embeddings: Embeddings, *, clip_norm: float = np.inf) -> ClassMeans:
    """Return the mean of each class present, of records clipped to an l2 norm of at most ``clip_norm``.

    No records at all, or a non-finite vector, is refused.
    """
    vectors, y = embeddings.vectors, embeddings.labels
    if not len(y):
        raise InputError("a client has no records to average; give every client at least one.")
    if not np.isfinite(vectors).all():
        raise InputError(
            f"embedding {int(np.argwhere(~np.isfinite(vectors))[0, 0])} is not finite; drop that record."
        )
    labels, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    member_PN = np.zeros((len(labels), len(y)))
    member_PN[index, np.arange(len(y))] = 1.0
    clipped_Nd = clip_to_ball(vectors, norm=clip_norm)
    return ClassMeans(member_PN @ clipped_Nd / counts[:, None], labels, counts)
