"""Which coordinates form the informative group: the choice, and the event that says what it costs."""

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool

from accountant.events import Leaf
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.plug import Plugin
from privkit.release import Prototypes

Memory = Mapping[str, np.ndarray]


class AbstractPartition(Plugin):
    """Chooses which coordinates of a client's embeddings form the informative group."""

    @property
    def private(self) -> bool:
        """Return whether what the choice reveals is accounted for."""
        return True

    def choices(self, rounds: int) -> int:
        """Return how many choices that cost something are made in so many rounds."""
        return rounds

    def budget(self, *, epsilon: float, delta: float, rounds: int) -> Leaf | None:
        """Return what one choice may cost, whatever the width of an embedding; ``None`` for nothing.

        Args:
            epsilon: promised for the whole run, choices and releases together, in nats.
            delta: likewise, a probability.
            rounds: of the run.
        """
        return None

    def cost(self, budget: Leaf | None, *, size: int, dim: int, memory: Memory) -> Leaf | None:
        """Return what the next choice costs, at most its budget, contract undeclared; ``None`` for nothing.

        Args:
            budget: as :meth:`budget` returned it.
            size: of the informative group, from 1 to ``dim - 1``.
            dim: width of an embedding.
            memory: as :meth:`remember` returned it; empty before the first choice.
        """
        return None

    @abstractmethod
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
        """Return which coordinates are in the informative group, ``size`` of them.

        Args:
            embeddings: of one client, not clipped, without its canaries.
            size: of the informative group, from 1 to d - 1.
            cost: as :meth:`cost` returned it.
            public: records that anybody may see, under an encoder that anybody may use.
            memory: as :meth:`remember` returned it.
            noise: where randomness comes from.
        """

    def remember(self, memory: Memory, payload: Prototypes, informative: Bool[np.ndarray, " d"]) -> Memory:
        """Return what later choices may read: of what was sent, or of a choice that was paid for.

        Args:
            memory: before this round.
            payload: what was sent.
            informative: the choice that it was made with.
        """
        return {}


def largest(scores_d: np.ndarray, size: int) -> Bool[np.ndarray, " d"]:
    """Return which coordinates have the ``size`` largest scores; ties go to the lower index."""
    chosen_d = np.zeros(len(scores_d), dtype=bool)
    chosen_d[np.argsort(-scores_d, kind="stable")[:size]] = True
    return chosen_d
