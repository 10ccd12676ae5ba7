"""The control that no private selection can beat: the true top-k, without noise. It promises nothing."""

from pydantic import Field

from accountant.events import NonPrivate
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Chosen, largest
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

    def choose(self, embeddings: Embeddings, *, size: int, epsilon: float, noise: Noise) -> Chosen:
        scores_d = discriminability(embeddings, stabiliser=self.stabiliser)
        return Chosen(
            largest(scores_d, size), NonPrivate(reason="the partition shows private scores without noise")
        )
