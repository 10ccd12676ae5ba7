"""The control that a selection has to beat: coordinates drawn at random, without a look at any record."""

from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Chosen, largest


class Random(AbstractPartition):
    """A uniformly random group, drawn anew in every round. It costs nothing."""

    def choose(self, embeddings: Embeddings, *, size: int, epsilon: float, noise: Noise) -> Chosen:
        return Chosen(largest(noise.laplace((embeddings.vectors.shape[1],)), size), None)
