r"""How little noise a private selection needs beside Gaussian noise that is already fixed.

VPP sets aside ``r epsilon`` for its selections and gives the rest to the Gaussian noise. At the same total and the
same Gaussian noise, what is really left for the selections is

* ``mu_left^2 = mu(epsilon)^2 - mu_release^2`` for all that composes like a Gaussian: Gaussian scores, Gumbel picks,
  Laplace noise on the whole score vector;
* the largest ``epsilon_0`` whose randomised responses fit beside the release, for pure mechanisms.

Each kind of selection turns one of the two into a scale of its noise, in units of H, the range of a score.

Source: Dong, Roth and Su (2022), Corollary 3.3, https://arxiv.org/abs/1905.02383; docs of :mod:`accountant.joint`,
:mod:`accountant.bounded_range` and :mod:`accountant.events.topk`
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

from accountant import check, gaussian, joint
from accountant.bracket import safe_root
from accountant.events import ExponentialTopK, GaussianTopK, GumbelTopK, LaplaceTopK, TopK
from accountant.normal import log_cdf
from accountant.score_noise import (
    AbstractScoreNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
)
from accountant.selection import scale as scale_of_the_paper

_SAFETY = 1e-11  # relative; above the rounding error of a scale


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A total, and the share of it that VPP sets aside for selecting.

    Attributes:
        epsilon: of selections and releases over all rounds, in nats, > 0.
        delta: of all, in (0, 1).
        rounds: releases, at least 1.
        split: share of epsilon that is set aside, in (0, 1); VPDR's r.
    """

    epsilon: float
    delta: float
    rounds: int
    split: float

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.open_unit(delta=self.delta, split=self.split)
        check.count(rounds=self.rounds)

    @property
    def sigma(self) -> float:
        """Return the noise multiplier of the release by the paper's split, exactly calibrated."""
        return gaussian.sigma_from_epsilon(
            epsilon=(1 - self.split) * self.epsilon, delta=self.delta, rounds=self.rounds
        )

    @property
    def mu_of_release(self) -> float:
        """Return mu of all releases together with that noise."""
        return gaussian.mu_from_sigma(sigma=self.sigma, rounds=self.rounds)

    @property
    def mu_left(self) -> float:
        """Return the largest mu of selections that fit beside the release."""
        whole = gaussian.mu_from_epsilon(epsilon=self.epsilon, delta=self.delta)
        return math.sqrt((whole - self.mu_of_release) * (whole + self.mu_of_release))

    def pure_left(self, selections: int) -> float:
        """Return the largest epsilon_0 of pure selections that fit beside the release, in nats."""
        return _pure_left(self, selections)


@cache
def _pure_left(budget: Budget, selections: int) -> float:
    target = math.log(budget.delta)

    def excess(log_epsilon: float) -> float:
        pure = {math.exp(log_epsilon): selections}
        return joint.log_delta(epsilon=budget.epsilon, mu=budget.mu_of_release, pure=pure) - target

    safe = math.log(budget.split * budget.epsilon / selections) - _SAFETY  # adding epsilons up is always safe
    unsafe = safe + 1
    while excess(unsafe) <= 0:
        safe, unsafe = unsafe, unsafe + 1
    return math.exp(safe_root(excess, safe=safe, unsafe=unsafe, tolerance=1e-12))


@dataclass(frozen=True)
class AbstractSelectionKind(ABC):
    """A way of selecting k of dim coordinates with noise.

    Attributes:
        name: of the noise and of how it is accounted.
        noise: on one score.
        event: what a run of it is on record.
    """

    name: ClassVar[str]
    noise: ClassVar[AbstractScoreNoise]
    event: ClassVar[type[TopK]]

    @abstractmethod
    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        """Return the smallest scale of the noise / H at which ``selections`` of them fit beside the release."""


class PaperLaplace(AbstractSelectionKind):
    """Laplace noise for ``split * epsilon``, its epsilons added up (VPDR, Eq. 9)."""

    name, noise, event = "Laplace, as the paper", LaplaceNoise(), LaplaceTopK

    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        apart = budget.split * budget.epsilon
        return scale_of_the_paper(k=k, score_bound=1.0, epsilon_total=apart, rounds=selections)


class JointLaplace(AbstractSelectionKind):
    """Laplace noise as a pure mechanism, ``2 min(k, d - k) H / lambda``, accounted with the release."""

    name, noise, event = "Laplace, joint", LaplaceNoise(), LaplaceTopK

    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        return 2 * min(k, dim - k) / budget.pure_left(selections)


class VectorLaplace(AbstractSelectionKind):
    """Laplace noise on all scores: ``sqrt(d)`` times the mu of one, which moves by H."""

    name, noise, event = "Laplace, whole vector", LaplaceNoise(), LaplaceTopK

    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        mu_of_one = budget.mu_left / math.sqrt(selections * dim)
        shift = -2 * math.log1p(-math.erf(mu_of_one / math.sqrt(8)))  # inverts gaussian.mu_from_laplace
        return (1 + _SAFETY) / shift


class JointExponential(AbstractSelectionKind):
    """Exponential noise as a pure mechanism, ``2 k H / beta``, accounted with the release."""

    name, noise, event = "exponential, joint", ExponentialNoise(), ExponentialTopK

    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        return 2 * k / budget.pure_left(selections)


class Gumbel(AbstractSelectionKind):
    """Gumbel noise: k picks by the exponential mechanism, each of range ``2 H / beta``."""

    name, noise, event = "Gumbel", GumbelNoise(), GumbelTopK

    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        mu_of_pick = budget.mu_left / math.sqrt(selections * k)
        return 2 * (1 + _SAFETY) / _eta(mu_of_pick)


class GaussianScores(AbstractSelectionKind):
    """Gaussian noise on all scores, a vector of sensitivity ``H sqrt(d)``."""

    name, noise, event = "Gaussian", GaussianNoise(), GaussianTopK

    def scale(self, budget: Budget, *, k: int, dim: int, selections: int) -> float:
        return (1 + _SAFETY) * math.sqrt(selections * dim) / budget.mu_left


def _eta(mu: float) -> float:
    """Return the range of a pick that is mu-GDP, the inverse of :func:`accountant.bounded_range.mu`."""
    if mu < 2:  # there, the difference of the logarithms would lose digits
        return 4 * math.atanh(math.erf(mu / math.sqrt(8)))
    return 2 * (log_cdf(mu / 2) - log_cdf(-mu / 2))


KINDS: tuple[AbstractSelectionKind, ...] = (
    PaperLaplace(),
    JointLaplace(),
    VectorLaplace(),
    JointExponential(),
    Gumbel(),
    GaussianScores(),
)
"""Every kind of selection that is compared, the paper's first."""
