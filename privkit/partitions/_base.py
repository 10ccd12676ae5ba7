"""Which coordinates form the informative group: the choice, and the event that says what it cost."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from accountant.events import Leaf
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.plug import Plugin


class Chosen(NamedTuple):
    """A partition.

    Attributes:
        informative: whether a coordinate is in the informative group, shape [d].
        cost: what the choice cost, contract left undeclared; ``None`` when it looked at no record.
    """

    informative: Bool[np.ndarray, " d"]
    cost: Leaf | None


class AbstractPartition(Plugin):
    """Chooses which coordinates of a client's embeddings form the informative group."""

    @property
    def share(self) -> float:
        """Return the fraction of epsilon that all choices of a run spend together, in [0, 1)."""
        return 0.0

    @property
    def private(self) -> bool:
        """Return whether what the choice reveals is accounted for."""
        return True

    @abstractmethod
    def choose(self, embeddings: Embeddings, *, size: int, epsilon: float, noise: Noise) -> Chosen:
        """Return a partition with ``size`` coordinates in the informative group.

        Args:
            embeddings: of one client, not clipped.
            size: of the informative group, d_A, from 1 to d - 1.
            epsilon: what this one choice may spend, in nats; 0 when :attr:`share` is.
            noise: where randomness comes from.
        """


def largest(scores_d: np.ndarray, size: int) -> Bool[np.ndarray, " d"]:
    """Return which coordinates have the ``size`` largest scores; ties go to the lower index."""
    chosen_d = np.zeros(len(scores_d), dtype=bool)
    chosen_d[np.argsort(-scores_d, kind="stable")[:size]] = True
    return chosen_d
