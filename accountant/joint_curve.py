"""Ceiling of pure mechanisms joined with a Gaussian one."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from accountant import check, joint
from accountant.bracket import safe_root
from accountant.normal import quantile
from accountant.response import Losses, TooManyAtomsError, losses
from accountant.tradeoff import AbstractCurve, GaussianCurve

_TIE = 1e-12  # sums of the same losses in another order agree to this
_RAREST = -80.0  # ln; what is rarer counts as certain loss, and adds less than e^-60 to a rate
_REACH = 40.0  # beyond this many standard deviations Phi is 0 or 1


@dataclass(frozen=True, kw_only=True)
class JointCurve(AbstractCurve):
    """Ceiling of randomised responses next to mu-GDP, which no pure mechanisms next to it exceed.

    Attributes:
        mu: the Gaussian part, at least 0; 0 for none.
        pure: pairs (eps_0, times), each eps_0 once.

    >>> curve = JointCurve(mu=0.25, pure=((0.5, 1),))
    >>> round(curve.auc, 9), round(curve.advantage, 9)
    (0.655490857, 0.246964087)

    Source: docs of :mod:`accountant.joint`; the AUC compares two independent losses, whose binomial parts
    add up to one of twice as many responses.
    """

    mu: float
    pure: tuple[tuple[float, int], ...]

    def __post_init__(self) -> None:
        check.non_negative(mu=self.mu)
        object.__setattr__(self, "pure", tuple((eps, times) for eps, times in self.pure))
        if len({eps for eps, _ in self.pure}) < len(self.pure):
            raise ValueError(f"pure={self.pure} names an epsilon twice; add up how often it ran.")
        for epsilon, times in self.pure:
            check.positive(epsilon=epsilon)
            check.count(times=times)

    def tpr(self, fpr: float, /) -> float:
        """Return the true-positive rate of the likelihood-ratio test at ``fpr``."""
        check.closed_unit(fpr=fpr)
        if not 0 < fpr < 1:
            return fpr
        try:
            outcomes = self._outcomes
        except TooManyAtomsError:
            return self._as_gaussian.tpr(fpr)
        rate = _atomic_tpr(outcomes, fpr) if self.mu == 0 else _smooth_tpr(outcomes, self.mu, fpr)
        return min(rate + math.exp(outcomes.log_certain), 1.0)

    @property
    def auc(self) -> float:
        """Return the probability that a member's loss exceeds a non-member's, ties counted half."""
        try:
            doubled = losses({eps: 2 * times for eps, times in self.pure}, rarest=_RAREST)
        except TooManyAtomsError:
            return self._as_gaussian.auc
        mass = np.exp(doubled.log_mass)
        if self.mu == 0:
            tied = np.abs(doubled.loss) <= _TIE * np.abs(doubled.loss).max()
            wins = np.where(tied, 0.5, doubled.loss > 0)
        else:
            wins = ndtr((doubled.loss + self.mu**2) / (self.mu * math.sqrt(2)))
        return float(min((mass * wins).sum() + math.exp(doubled.log_certain), 1.0))

    @property
    def advantage(self) -> float:
        """Return delta at epsilon 0."""
        try:
            return math.exp(joint.log_delta_of(self._outcomes, epsilon=0.0, mu=self.mu))
        except TooManyAtomsError:
            return self._as_gaussian.advantage

    @cached_property
    def _outcomes(self) -> Losses:
        return losses(dict(self.pure), rarest=_RAREST)

    @cached_property
    def _as_gaussian(self) -> GaussianCurve:
        """Return the ceiling where the sum has too many outcomes: every pure part as a Gaussian one."""
        return GaussianCurve(mu=math.hypot(self.mu, joint.gaussian_equivalent(dict(self.pure))))


def _atomic_tpr(outcomes: Losses, fpr: float) -> float:
    """Return the TPR when only randomised responses are seen: the curve joins their corners."""
    order = np.argsort(-outcomes.loss)
    member = np.cumsum(np.exp(outcomes.log_mass[order]))
    other = np.cumsum(np.exp(outcomes.log_mass[order] - outcomes.loss[order]))
    return float(np.interp(fpr, np.append(0.0, other), np.append(0.0, member)))


def _smooth_tpr(outcomes: Losses, mu: float, fpr: float) -> float:
    """Return the TPR at the threshold on the total loss where the FPR is ``fpr``, or just above it."""
    member, other = np.exp(outcomes.log_mass), np.exp(outcomes.log_mass - outcomes.loss)
    lowest = float(outcomes.loss.min()) - mu * (mu + _REACH)
    highest = float(outcomes.loss.max()) + mu * (mu + _REACH)

    wanted = quantile(fpr)  # on this scale a Gaussian curve is a straight line

    def missing(above: float) -> float:
        z = (outcomes.loss - mu**2 / 2 - lowest - above) / mu
        return wanted - float(ndtri(min((other * ndtr(z)).sum(), 1.0)))

    if missing(0.0) > 0:  # other data hardly ever produce such losses
        return 1.0
    above = safe_root(missing, safe=0.0, unsafe=highest - lowest)
    return float((member * ndtr((outcomes.loss + mu**2 / 2 - lowest - above) / mu)).sum())
