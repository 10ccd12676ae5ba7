"""E11: a selection that spends all of its epsilon in each round costs rounds times as much."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import special

from accountant import check, selection
from accountant.counterexamples import _top1
from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_from_losses
from accountant.counterexamples.e09_unclipped_score import scores


def per_round_epsilon(*, epsilon1: float, rounds: int) -> float:
    """Return what selections cost in total whose noise spends ``epsilon1`` in every round: ``rounds * epsilon1``.

    Args:
        epsilon1: meant for all rounds together, in nats, > 0.
        rounds: at least 1.

    >>> per_round_epsilon(epsilon1=0.1, rounds=20)
    2.0
    """
    check.positive(epsilon1=epsilon1)
    check.count(rounds=rounds)
    return epsilon1 * rounds


@dataclass(frozen=True, kw_only=True)
class PerRound(Counterexample):
    """An outlier makes one of two scores the largest possible; the replaced record makes it the other one.

    Attributes:
        epsilon: of all selections together that is claimed, in nats, > 0.
        rounds: at least 1.
        n: records of each class, at least 2.
        score_bound: H, > 0 and below 1.
    """

    title = "the selection's epsilon is spent in every round"
    short = "epsilon_1 in every round"
    claim = "Laplace noise of scale 2kH/epsilon_1 makes the selections of a run epsilon_1-DP"
    truth = (
        "it does so for one round; T rounds cost T epsilon_1 (this pair, k = 1 of d = 2, shows half of it)"
    )
    breaks = ("A7",)
    way_out = "divide epsilon_1 by the rounds, select once, or account jointly (privkit calibrate vpp)"
    draws = 50_000

    epsilon: float = 0.1
    delta: float = 0.0
    rounds: int = 20
    n: int = 50
    score_bound: float = 0.1

    def data(self) -> tuple[Records, Records]:
        zeros_nd = np.zeros((self.n, 2))
        one_nd, other_nd = zeros_nd.copy(), zeros_nd.copy()
        one_nd[0, 0] = other_nd[0, 1] = 1e6
        return {"a": one_nd, "b": zeros_nd}, {"a": other_nd, "b": zeros_nd}

    @property
    def scale(self) -> float:
        """Return the scale of the Laplace noise of one round for k = 1."""
        return selection.scale(k=1, score_bound=self.score_bound, epsilon_total=self.epsilon)

    def _clipped_scores(self) -> tuple[Float[np.ndarray, " 2"], Float[np.ndarray, " 2"]]:
        before, after = (
            np.clip(scores(records, zeta=1e-6), 0.0, self.score_bound) for records in self.data()
        )
        return before, after

    @property
    def _odds(self) -> float:
        """Return the log odds that one round selects the coordinate of the outlier."""
        before, _ = self._clipped_scores()
        p = _top1.win(float(before[0] - before[1]) / self.scale)
        return math.log(p) - math.log1p(-p)

    def facts(self) -> tuple[Fact, ...]:
        total = per_round_epsilon(epsilon1=self.epsilon, rounds=self.rounds)
        return (
            Fact(name="epsilon of all selections, guaranteed", value=total, claimed=self.epsilon),
            Fact(
                name="epsilon of this pair at delta=0", value=self.rounds * self._odds, claimed=self.epsilon
            ),
            Fact(name=self.delta_name, value=self._exact_delta(), claimed=self.delta),
        )

    def _exact_delta(self) -> float:
        wins = np.arange(self.rounds + 1)
        losses = (2 * wins - self.rounds) * self._odds
        p = 1 / (1 + math.exp(-self._odds))
        masses = special.binom(self.rounds, wins) * p**wins * (1 - p) ** (self.rounds - wins)
        return float(masses @ -np.expm1(np.minimum(self.epsilon - losses, 0.0)))

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        before, _ = self._clipped_scores()
        wins_n = _top1.race(before, scale=self.scale, shape=(samples, self.rounds), rng=rng).sum(1)
        losses_n = (2 * wins_n - self.rounds) * self._odds
        return (delta_from_losses(self.delta_name, losses_n, epsilon=self.epsilon, rng=rng),)
