"""Ceilings that a promise puts on every membership attack, as trade-off curves.

A curve answers what the best attack against the claimed guarantee can reach: its true-positive rate at a
false-positive rate, its AUC, its advantage. They hold for a random member against an exchangeable
non-member, and for an attacker who holds no private state.

Source: Dong, Roth and Su (2022), https://arxiv.org/abs/1905.02383; Kairouz, Oh and Viswanath (2015), Theorem 2.1,
https://arxiv.org/abs/1311.0776
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from accountant import check
from accountant.normal import cdf, quantile


class AbstractCurve(ABC):
    """The best that any attack can do against a promise."""

    @abstractmethod
    def tpr(self, fpr: float, /) -> float:
        """Return the largest true-positive rate at a false-positive rate; both in [0, 1]."""

    @property
    @abstractmethod
    def auc(self) -> float:
        """Return the largest area under the ROC curve, in [1/2, 1]."""

    @property
    @abstractmethod
    def advantage(self) -> float:
        """Return the largest TPR - FPR over all thresholds, in [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class GaussianCurve(AbstractCurve):
    """Ceiling of mu-GDP; attained by the Gaussian mechanism.

    Attributes:
        mu: at least 0; 0 is perfect privacy.

    >>> curve = GaussianCurve(mu=0.26805112302698494)
    >>> round(curve.tpr(0.01), 5), round(curve.auc, 4), round(curve.advantage, 4)
    (0.01978, 0.5752, 0.1066)
    """

    mu: float

    def __post_init__(self) -> None:
        check.non_negative(mu=self.mu)

    def tpr(self, fpr: float, /) -> float:
        """Return ``Phi(Phi^{-1}(fpr) + mu)``."""
        check.closed_unit(fpr=fpr)
        return cdf(quantile(fpr) + self.mu) if 0 < fpr < 1 else fpr

    @property
    def auc(self) -> float:
        """Return ``Phi(mu / sqrt 2)``."""
        return cdf(self.mu / math.sqrt(2))

    @property
    def advantage(self) -> float:
        """Return ``2 Phi(mu / 2) - 1``."""
        return math.erf(self.mu / math.sqrt(8))


@dataclass(frozen=True, kw_only=True)
class ApproximateCurve(AbstractCurve):
    """Ceiling of (epsilon, delta)-DP when nothing else is known about the mechanism.

    Attributes:
        epsilon: in nats, at least 0.
        delta: in [0, 1].

    >>> curve = ApproximateCurve(epsilon=1.0, delta=1e-5)
    >>> round(curve.tpr(0.01), 5), round(curve.auc, 4), round(curve.advantage, 4)
    (0.02719, 0.7311, 0.4621)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check.non_negative(epsilon=self.epsilon)
        check.closed_unit(delta=self.delta)

    def tpr(self, fpr: float, /) -> float:
        """Return ``min(e^eps fpr + delta, 1 - e^-eps (1 - delta - fpr), 1)``."""
        check.closed_unit(fpr=fpr)
        lifted = math.exp(min(self.epsilon + math.log(fpr), 0.0)) if fpr > 0 else 0.0
        mirrored = math.exp(-self.epsilon) * (self.delta + fpr) - math.expm1(-self.epsilon)
        return min(lifted + self.delta, mirrored, 1.0)

    @property
    def auc(self) -> float:
        """Return ``1 - (1 - delta)^2 / (1 + e^eps)``."""
        return 1 - (1 - self.delta) ** 2 * self._odds

    @property
    def advantage(self) -> float:
        """Return ``(e^eps - 1 + 2 delta) / (e^eps + 1)``."""
        return math.tanh(self.epsilon / 2) + 2 * self.delta * self._odds

    @property
    def _odds(self) -> float:
        return math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))


@dataclass(frozen=True, kw_only=True)
class LossyCurve(AbstractCurve):
    """Ceiling of a mechanism that gives its secret away with some probability, and is another one otherwise.

    Attributes:
        kept: probability that it does not, in [0, 1].
        rest: ceiling of the other mechanism.

    Source: Kairouz, Oh and Viswanath (2015), Theorem 3.2: the outputs that give the secret away differ between
    neighbours, and are as likely under both.

    >>> alone = ApproximateCurve(epsilon=1.0, delta=1e-5)
    >>> lossy = LossyCurve(kept=1 - 1e-5, rest=ApproximateCurve(epsilon=1.0, delta=0.0))
    >>> round(alone.auc - lossy.auc, 12), round(alone.tpr(0.01) - lossy.tpr(0.01), 12)
    (0.0, 0.0)
    """

    kept: float
    rest: AbstractCurve

    def __post_init__(self) -> None:
        check.closed_unit(kept=self.kept)

    def tpr(self, fpr: float, /) -> float:
        """Return ``1 - kept + kept * rest(fpr / kept)``."""
        check.closed_unit(fpr=fpr)
        return 1 - self.kept + self.kept * self.rest.tpr(fpr / self.kept if fpr < self.kept else 1.0)

    @property
    def auc(self) -> float:
        """Return ``1 - kept^2 (1 - AUC of the rest)``."""
        return 1 - self.kept**2 * (1 - self.rest.auc)

    @property
    def advantage(self) -> float:
        """Return ``1 - kept + kept * advantage of the rest``."""
        return 1 - self.kept + self.kept * self.rest.advantage


@dataclass(frozen=True)
class LowestCurve(AbstractCurve):
    """Ceiling of a mechanism that keeps several others: the lowest of them, number by number.

    Attributes:
        curves: at least one; each a ceiling of the same mechanism.
    """

    curves: tuple[AbstractCurve, ...]

    def tpr(self, fpr: float, /) -> float:
        """Return the lowest of the curves at ``fpr``."""
        return min(curve.tpr(fpr) for curve in self.curves)

    @property
    def auc(self) -> float:
        """Return the smallest of the areas; the area below the lowest curve could be smaller still."""
        return min(curve.auc for curve in self.curves)

    @property
    def advantage(self) -> float:
        """Return the smallest of the advantages."""
        return min(curve.advantage for curve in self.curves)


@dataclass(frozen=True)
class NoPromise(AbstractCurve):
    """Ceiling when nothing was promised: none."""

    def tpr(self, fpr: float, /) -> float:
        """Return 1."""
        check.closed_unit(fpr=fpr)
        return 1.0

    @property
    def auc(self) -> float:
        """Return 1."""
        return 1.0

    @property
    def advantage(self) -> float:
        """Return 1."""
        return 1.0


def single_release_auc(*, mu: float) -> float:
    """Return the largest AUC over any pair of scores computed from one and the same release.

    Scores of a member and a non-member read off one release share its noise, which is tighter than
    comparing two releases: ``Phi(mu / 2)``.

    Args:
        mu: Gaussian-DP parameter of that release, at least 0.
    """
    check.non_negative(mu=mu)
    return cdf(mu / 2)


def single_release_iid_auc(*, mu: float) -> float:
    """Return the largest AUC when, besides, all records of a class are independent draws of one law.

    ``Phi(mu / (2 sqrt 2))``; arguments as in :func:`single_release_auc`.

    >>> [round(single_release_iid_auc(mu=mu), 3) for mu in (0.26805, 0.50155, 1.66603)]
    [0.538, 0.57, 0.722]
    """
    check.non_negative(mu=mu)
    return cdf(mu / math.sqrt(8))
