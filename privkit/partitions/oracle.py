"""The control that no private selection can beat: the true top-k, without noise. It promises nothing."""

import numpy as np
from jaxtyping import Bool
from pydantic import Field

from accountant.events import Leaf, NonPrivate
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Memory, largest
from privkit.partitions._scores import discriminability


class Oracle(AbstractPartition):
    """The k coordinates that separate the client's classes best."""

    stabiliser: float = Field(
        default=1e-6,
        ge=0,
        description="zeta, added to the variance within classes, in squared embedding units",
    )

    @property
    def private(self) -> bool:
        return False

    def cost(self, budget: Leaf | None, *, size: int, dim: int, memory: Memory) -> NonPrivate:
        return NonPrivate(reason="the partition shows private scores without noise")

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
        return largest(discriminability(embeddings, stabiliser=self.stabiliser), size)
