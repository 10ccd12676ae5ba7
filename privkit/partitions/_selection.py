"""What private selections share: noise on every clipped score, and the k largest are taken."""

import math
from abc import abstractmethod

import numpy as np
from jaxtyping import Bool, Float64
from pydantic import Field

from accountant.events import Gaussian, Leaf, TopK
from accountant.gaussian import mu_from_epsilon
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Memory, largest
from privkit.partitions._scores import discriminability
from privkit.release import Prototypes


class AbstractSelection(AbstractPartition):
    """The k coordinates with the largest noisy discriminability.

    Scores are clipped to [0, H], so that one record moves each by at most H, whatever else it moves: the cost of a
    selection survives a trained encoder, private counts and a change of label.
    """

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
    once: bool = Field(
        default=False, description="choose in the first round and keep it, for all that selections may spend"
    )

    def choices(self, rounds: int) -> int:
        return 1 if self.once else rounds

    def cost(self, budget: Leaf | None, *, size: int, dim: int, memory: Memory) -> TopK | None:
        return None if "informative" in memory else self.top_k(budget, size=size, dim=dim)

    @abstractmethod
    def top_k(self, budget: Leaf | None, *, size: int, dim: int) -> TopK:
        """Return the selection with the least noise that keeps the budget of one choice."""

    @abstractmethod
    def draw(self, noise: Noise, shape: tuple[int, ...]) -> Float64[np.ndarray, " d"]:
        """Return noise of scale 1, as the event of :meth:`top_k` counts scales."""

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
        if not isinstance(cost, TopK):
            return memory["informative"].astype(bool)
        scores_d = discriminability(
            embeddings, stabiliser=self.stabiliser, stabiliser_of_median=self.stabiliser_of_median
        )
        bounded_d = np.minimum(scores_d, self.score_bound)
        return largest(bounded_d + cost.scale * self.draw(noise, bounded_d.shape), size)

    def remember(self, memory: Memory, payload: Prototypes, informative: Bool[np.ndarray, " d"]) -> Memory:
        return {"informative": informative.astype(np.uint8)} if self.once else {}


class AbstractGaussianSelection(AbstractSelection):
    r"""A selection whose cost adds up with that of the releases as if both were Gaussian noise.

    Pure noise that spends ``r epsilon`` leaves more than that unspent, since (epsilon, delta) of Gaussian noise is
    not linear in epsilon. What the paper's split leaves to all selections together is

    .. math:: \mu_{sel}^2 = \mu(\epsilon, \delta)^2 - \mu((1 - r)\epsilon, \delta)^2,

    and it is shared out equally over them. The releases get no more noise for it than the split gives them.
    """

    def budget(self, *, epsilon: float, delta: float, rounds: int) -> Gaussian:
        whole = mu_from_epsilon(epsilon=epsilon, delta=delta)
        releases = mu_from_epsilon(epsilon=(1 - self.split) * epsilon, delta=delta)
        left = math.sqrt((whole - releases) * (whole + releases))
        return Gaussian(noise_multiplier=math.sqrt(self.choices(rounds)) / left)

    def top_k(self, budget: Leaf | None, *, size: int, dim: int) -> TopK:
        assert isinstance(budget, Gaussian)
        return self.top_k_of(1 / budget.noise_multiplier, size=size, dim=dim)

    @abstractmethod
    def top_k_of(self, mu: float, *, size: int, dim: int) -> TopK:
        """Return the selection with the least noise that is mu-GDP, on the safe side; ``mu`` > 0, no unit."""


ROUNDED_UP = 1 + 1e-9
"""Factor on a noise scale that was computed in floating point, so that its cost is not above the budget."""
