"""The private selection of VPP: one-shot top-k of scores with Laplace noise."""

from typing import ClassVar

import numpy as np
from pydantic import Field

from accountant.events import PureDP
from accountant.selection import scale
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Chosen, largest
from privkit.partitions._scores import discriminability


class Laplace(AbstractPartition):
    """The k coordinates with the largest noisy discriminability, drawn anew in every round.

    Scores are clipped to [0, H], so that one record moves each by at most H, and get Laplace noise of scale
    ``2 k H / epsilon`` (VPDR, Eq. 9, for one round; Qiao, Su and Zhang, 2021, "Oneshot differentially private
    top-k selection").
    """

    citation: ClassVar[str] = "vpdr"

    split: float = Field(
        default=0.1, gt=0, lt=1, description="r, fraction of epsilon that the selections of all rounds spend"
    )
    score_bound: float = Field(
        default=0.1, gt=0, description="H, largest score; its range bounds sensitivity"
    )
    stabiliser: float = Field(
        default=1e-6,
        ge=0,
        description="zeta, added to the variance within classes, in squared embedding units",
    )
    stabiliser_of_median: float = Field(
        default=0.0,
        ge=0,
        description="added to zeta, times the median variance between classes; the published code has 1e-3",
    )

    @property
    def share(self) -> float:
        return self.split

    def choose(self, embeddings: Embeddings, *, size: int, epsilon: float, noise: Noise) -> Chosen:
        scores_d = discriminability(
            embeddings, stabiliser=self.stabiliser, stabiliser_of_median=self.stabiliser_of_median
        )
        bounded_d = np.minimum(scores_d, self.score_bound)
        spread = scale(k=size, score_bound=self.score_bound, epsilon_total=epsilon)
        noisy_d = bounded_d + spread * noise.laplace(bounded_d.shape)
        return Chosen(largest(noisy_d, size), PureDP(epsilon=epsilon))
