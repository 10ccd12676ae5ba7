"""E9: VPP's score without its clip jumps by orders of magnitude when one record changes."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Shaped

from accountant import check, selection
from accountant.counterexamples import _top1
from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_of_event

_SPREAD = 0.03  # of the second coordinate around its class mean: a score between those of the first


def anova_score(
    values_n: Float[np.ndarray, " n"], labels_n: Shaped[np.ndarray, " n"], *, zeta: float
) -> float:
    r"""Return how well one coordinate separates classes, at least 0, not clipped.

    .. math:: S = \frac{\sum_c n_c (\mu_c - \mu)^2 / (C - 1)}{\sum_c (n_c - 1) s_c^2 / (n - C) + \zeta}

    Args:
        values_n: the coordinate of each record.
        labels_n: class of each record.
        zeta: stabiliser, > 0.

    Returns:
        0.0 where nothing can be compared: one class, or no class with two records.

    Source: VPDR, Eqs. 7 and 8

    >>> x, y = np.array([1.0] * 50 + [-1.0] * 50), np.repeat([0, 1], 50)
    >>> before = anova_score(x, y, zeta=1e-6)
    >>> x[0] = -1.0
    >>> before, round(anova_score(x, y, zeta=1e-6), 9)
    (100000000.0, 2400.939976501)
    """
    check.positive(zeta=zeta)
    groups = [values_n[labels_n == label] for label in np.unique(labels_n)]
    n, classes = len(values_n), len(groups)
    if classes < 2 or n <= classes:
        return 0.0
    between = sum(len(group) * (group.mean() - values_n.mean()) ** 2 for group in groups) / (classes - 1)
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / (n - classes)
    return float(between / (within + zeta))


def scores(records: Records, *, zeta: float) -> Float[np.ndarray, " d"]:
    """Return the score of every coordinate of some records."""
    labels_n = np.repeat(np.arange(len(records)), [len(records_nd) for records_nd in records.values()])
    columns = np.concatenate(list(records.values())).T
    return np.array([anova_score(column_n, labels_n, zeta=zeta) for column_n in columns])


@dataclass(frozen=True, kw_only=True)
class UnclippedScore(Counterexample):
    """Two classes that coordinate 1 separates perfectly until one record crosses over, and coordinate 2 well.

    Attributes:
        epsilon: of the selection that is claimed, in nats, > 0.
        n: records of each class, even, at least 2.
        score_bound: H, the sensitivity that the Laplace noise was made for, > 0.
        zeta: stabiliser of the score, > 0.
    """

    title = "VPP's selection score is not clipped to [0, H]"
    short = "VPP's score is not clipped"
    claim = "a score moves by at most H, so Laplace noise of scale 2kH/epsilon makes the top-k epsilon-DP"
    truth = "it moves by 1e8; the selected coordinate gives the record away (with the clip, H is right)"
    breaks = ("A4",)
    way_out = (
        "clip every score to [0, H] (defense vpp), or choose the coordinates at random or from public records"
    )
    draws = 20_000

    epsilon: float = 0.1
    delta: float = 0.0
    n: int = 50
    score_bound: float = 0.1
    zeta: float = 1e-6

    def data(self) -> tuple[Records, Records]:
        wiggle_n = np.where(np.arange(self.n) % 2, _SPREAD, -_SPREAD)
        first_nd = np.stack([np.ones(self.n), 1 + wiggle_n], axis=1)
        crossed_nd = first_nd.copy()
        crossed_nd[0, 0] = -1.0
        return {"a": first_nd, "b": -first_nd}, {"a": crossed_nd, "b": -first_nd}

    @property
    def scale(self) -> float:
        """Return the scale of the Laplace noise for k = 1."""
        return selection.scale(k=1, score_bound=self.score_bound, epsilon_total=self.epsilon)

    def facts(self) -> tuple[Fact, ...]:
        before, after = (scores(records, zeta=self.zeta) for records in self.data())
        p, q = (_top1.win(float(s[0] - s[1]) / self.scale) for s in (before, after))
        return (
            Fact(
                name="sensitivity of the score",
                value=float(abs(before[0] - after[0])),
                claimed=self.score_bound,
            ),
            Fact(name="score on D", value=float(before[0])),
            Fact(name="score on D'", value=float(after[0])),
            Fact(name=self.delta_name, value=p - float(np.exp(self.epsilon)) * q, claimed=self.delta),
        )

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        of_d, of_d_prime = (
            _top1.race(scores(records, zeta=self.zeta), scale=self.scale, shape=(samples,), rng=rng)
            for records in self.data()
        )
        return (delta_of_event(self.delta_name, of_d, of_d_prime, epsilon=self.epsilon),)
