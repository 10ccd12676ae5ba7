"""A selection that looks at nobody: the coordinates that separate the classes of public records."""

import numpy as np
from jaxtyping import Bool
from pydantic import Field

from accountant.events import Leaf
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Memory, largest
from privkit.partitions._scores import discriminability


class Public(AbstractPartition):
    """The k coordinates with the largest discriminability on public records, the same in every round.

    It costs nothing: under a public encoder the choice is the same for any two data sets of the client.
    """

    stabiliser: float = Field(
        default=1e-6,
        ge=0,
        description="zeta, added to the variance within classes, in squared embedding units",
    )

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
        if public is None:
            raise InputError(
                "partition public scores public records, and there are none; set split.reference above 0, give a "
                "recorded run some with recorder.ask(..., reference=...), or use partition history."
            )
        return largest(discriminability(public, stabiliser=self.stabiliser), size)
