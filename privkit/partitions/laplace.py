"""The private selection of VPP: one-shot top-k of scores with Laplace noise."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from accountant.events import LaplaceTopK, Leaf, PureDP
from accountant.selection import scale
from privkit.noise import Noise
from privkit.partitions._selection import AbstractSelection


class Laplace(AbstractSelection):
    """The k coordinates with the largest noisy discriminability, drawn anew in every round.

    Laplace noise of scale ``2 k H / epsilon`` on each score makes the set of the k largest epsilon-DP: given the
    noise of the others, it is a product of k survival functions, each shifted by at most 2H (VPDR, Eq. 9, for one
    round; Qiao, Su and Zhang, 2021, "Oneshot differentially private top-k selection").
    """

    citation: ClassVar[str] = "vpdr"

    def budget(self, *, epsilon: float, delta: float, rounds: int) -> PureDP:
        return PureDP(epsilon=self.split * epsilon / self.choices(rounds))

    def top_k(self, budget: Leaf | None, *, size: int, dim: int) -> LaplaceTopK:
        assert isinstance(budget, PureDP)
        spread = scale(k=size, score_bound=self.score_bound, epsilon_total=budget.epsilon)
        return LaplaceTopK(k=size, dim=dim, score_bound=self.score_bound, scale=spread)

    def draw(self, noise: Noise, shape: tuple[int, ...]) -> Float64[np.ndarray, " d"]:
        return noise.laplace(shape)
