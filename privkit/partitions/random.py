"""The control that a selection has to beat: coordinates drawn at random, without a look at any record."""

import numpy as np
from jaxtyping import Bool

from accountant.events import Leaf
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Memory, largest


class Random(AbstractPartition):
    """A uniformly random group, drawn anew in every round. It costs nothing."""

    def choose(
        self,
        embeddings: Embeddings,
        *,
        size: int,
        cost: Leaf | None,
        public: Embeddings | None,
        memory: Memory,
        noise: Noise,
    ) -> Bool[np.ndarray, " d"]:
        return largest(noise.laplace((embeddings.vectors.shape[1],)), size)
