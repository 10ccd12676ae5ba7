"""How much of the coordinates that truly separate a client's classes a partition chose."""

import numpy as np
from jaxtyping import Bool, Float64

from privkit.embeddings import Embeddings
from privkit.partitions._base import largest
from privkit.partitions._scores import discriminability


def overlap(
    embeddings: Embeddings, informative: Bool[np.ndarray, " d"], *, stabiliser: float = 1e-6
) -> Float64[np.ndarray, " 1"] | None:
    """Return the share of the true top-k that was chosen, in [0, 1]; chance is k / d.

    The truth is what partition ``oracle`` would have chosen, on embeddings before clip and noise. It is for the
    auditor alone. ``None`` where a client has one class only, and nothing is more discriminative than the rest.
    """
    if len(np.unique(embeddings.labels)) < 2:
        return None
    size = int(informative.sum())
    best_d = largest(discriminability(embeddings, stabiliser=stabiliser), size)
    return np.array([(best_d & informative).sum() / size])
