r"""What a budget is stated in: epsilon and delta, or what the best attack may reach.

Of Gaussian noise, all of these are functions of one number, so each target is a largest mu:

================  ==============================================
epsilon at delta  ``delta(epsilon; mu) = delta``
advantage         ``2 Phi(mu / 2) - 1 = erf(mu / sqrt 8)``
AUC               ``Phi(mu / sqrt 2) = (1 + erf(mu / 2)) / 2``
TPR at an FPR     ``Phi(Phi^{-1}(fpr) + mu)``
================  ==============================================

The ceilings are those of :class:`accountant.tradeoff.GaussianCurve`, and so are their conditions: a random member
against an exchangeable non-member, an attacker without private state.

Source: Dong, Roth and Su (2022), Definition 2.6 and Corollary 2.13, https://arxiv.org/abs/1905.02383; Kaissis et al.
(2024), https://arxiv.org/abs/2406.08918 (noise for an attack's success); Kulynych et al. (2024),
https://arxiv.org/abs/2407.02191 (for its advantage and its TPR at an FPR)
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from accountant import check, gaussian
from accountant.normal import cdf, density, quantile
from accountant.rounded import rounded_up

_SAFETY = 2e-14  # relative; the closed forms below are right to about 1e-15
_ULPS = 2e-15  # relative to a quantile; its rounding error
_NEAR = 1e-9  # relative; far beyond the rounding error of mu^2
_MOST_ROUNDS = 2**53  # beyond it, floats lose whole numbers
_STEPS = 60  # halvings of what is kept of mu; two are ever needed


class AbstractTarget(ABC):
    """What all releases together may cost."""

    @property
    def mu(self) -> float:
        """Return the largest mu that meets the target, on the safe side.

        Raises:
            ValueError: no mu above 0 can be told from one that misses the target.
        """
        mu = self._largest_mu()
        for power in range(_STEPS):
            lowered = mu * (1 - min(_SAFETY * 4**power, 1.0))
            if lowered > 0 and self.met_by(lowered):
                return lowered
        raise ValueError(f"{self} leaves nothing above what a guess reaches; raise it.")

    @abstractmethod
    def met_by(self, mu: float, /) -> bool:
        """Return whether mu-GDP, mu > 0, promises at least as much."""

    @abstractmethod
    def _largest_mu(self) -> float:
        """Return mu by closed form, to a few units of the last place."""


@dataclass(frozen=True, kw_only=True)
class EpsilonDelta(AbstractTarget):
    """(epsilon, delta)-differential privacy.

    Attributes:
        epsilon: in nats, > 0.
        delta: in (0, 1).
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)
        check.open_unit(delta=self.delta)

    def met_by(self, mu: float, /) -> bool:
        """Return whether delta at epsilon is at most the target's."""
        return gaussian.log_delta_from_mu(epsilon=self.epsilon, mu=mu) <= math.log(self.delta)

    def _largest_mu(self) -> float:
        return gaussian.mu_from_epsilon(epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True, kw_only=True)
class Mu(AbstractTarget):
    """mu-Gaussian differential privacy.

    Attributes:
        largest: mu, > 0.
    """

    largest: float

    def __post_init__(self) -> None:
        check.positive(mu=self.largest)

    def met_by(self, mu: float, /) -> bool:
        """Return whether mu is at most the target's."""
        return mu <= self.largest

    def _largest_mu(self) -> float:
        return self.largest


@dataclass(frozen=True, kw_only=True)
class Advantage(AbstractTarget):
    """Largest TPR - FPR of any membership attack.

    Attributes:
        advantage: in (0, 1).
    """

    advantage: float

    def __post_init__(self) -> None:
        check.open_unit(advantage=self.advantage)

    def met_by(self, mu: float, /) -> bool:
        """Return whether the best attack's advantage is at most the target."""
        return _erf_is_at_most(self.advantage, mu / math.sqrt(8))

    def _largest_mu(self) -> float:
        return math.sqrt(8) * _erf_inverse(self.advantage)


@dataclass(frozen=True, kw_only=True)
class Auc(AbstractTarget):
    """Largest area under the ROC curve of any membership attack.

    Attributes:
        auc: in (1/2, 1).
    """

    auc: float

    def __post_init__(self) -> None:
        check.open_unit(auc=self.auc)
        if self.auc <= 0.5:
            raise ValueError(f"auc={self.auc} must be above 0.5, which a guess reaches.")

    def met_by(self, mu: float, /) -> bool:
        """Return whether the best attack's AUC is at most the target."""
        return _erf_is_at_most(2 * self.auc - 1, mu / 2)

    def _largest_mu(self) -> float:
        return 2 * _erf_inverse(2 * self.auc - 1)


@dataclass(frozen=True, kw_only=True)
class TprAtFpr(AbstractTarget):
    """Largest true-positive rate of any membership attack at a false-positive rate.

    Attributes:
        tpr: in (fpr, 1).
        fpr: in (0, 1).
    """

    tpr: float
    fpr: float

    def __post_init__(self) -> None:
        check.open_unit(tpr=self.tpr, fpr=self.fpr)
        if self.tpr <= self.fpr:
            raise ValueError(f"tpr={self.tpr} must be above fpr={self.fpr}, which a guess reaches.")

    def met_by(self, mu: float, /) -> bool:
        """Return whether the best attack's TPR at the FPR is at most the target."""
        threshold = quantile(self.fpr) + mu
        return cdf(threshold) <= self.tpr if self.tpr < 0.5 else cdf(-threshold) >= 1 - self.tpr

    def _largest_mu(self) -> float:
        upper, lower = quantile(self.tpr), quantile(self.fpr)
        return upper - lower - _ULPS * (abs(upper) + abs(lower))


def sigma_for(target: AbstractTarget, *, rounds: int) -> float:
    """Return the smallest noise multiplier whose ``rounds`` Gaussian releases meet a target together.

    Args:
        target: what they may cost.
        rounds: releases on the same data, at least 1.

    Returns:
        Noise standard deviation / l2 sensitivity, never below the exact value.

    >>> round(sigma_for(Advantage(advantage=0.1), rounds=20), 6)
    17.794398
    >>> round(sigma_for(TprAtFpr(tpr=0.02, fpr=0.01), rounds=20), 6)
    16.40555
    """
    check.count(rounds=rounds)
    sigma = math.sqrt(rounds) / target.mu
    if math.isinf(sigma):
        raise ValueError(f"{target} needs more noise than a float holds; raise it.")
    while not target.met_by(gaussian.mu_from_sigma(sigma=sigma, rounds=rounds)):
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def rounds_for(target: AbstractTarget, *, sigma: float) -> int:
    """Return the largest number of Gaussian releases that meet a target together.

    Args:
        target: what they may cost.
        sigma: noise standard deviation / l2 sensitivity of one of them, > 0.

    Raises:
        ValueError: not even one meets it, or more than 2^53 do.

    >>> rounds_for(EpsilonDelta(epsilon=1.0, delta=1e-5), sigma=26.4)
    50
    """
    check.positive(sigma=sigma)
    root = target.mu * sigma
    about = root * root  # of a power, a float would complain
    if not about < _MOST_ROUNDS:
        raise ValueError(f"sigma={sigma:g} keeps the target for more than 2^53 rounds; give less noise.")
    allowed, refused = math.floor(about * (1 - _NEAR)), math.ceil(about * (1 + _NEAR)) + 1
    while refused - allowed > 1:
        middle = (allowed + refused) // 2
        met = target.met_by(math.sqrt(middle) / sigma)
        allowed, refused = (middle, refused) if met else (allowed, middle)
    if allowed < 1:
        raise ValueError(
            f"sigma={sigma:g} does not keep the target even once; one release needs "
            f"{rounded_up(sigma_for(target, rounds=1))}."
        )
    return allowed


def _erf_is_at_most(value: float, x: float) -> bool:
    """Return whether erf(x) <= value in (0, 1), told from whichever of the two tails has the digits."""
    return math.erf(x) <= value if value < 0.5 else math.erfc(x) >= 1 - value


def _erf_inverse(value: float) -> float:
    """Return the x > 0 with erf(x) = value in (0, 1), to a few units of the last place."""
    if value > 0.5:
        return -quantile((1 - value) / 2) / math.sqrt(2)
    x = value * math.sqrt(math.pi) / 2
    for _ in range(6):  # Newton on a concave function, from its left; erf loses nothing near 0
        x += (value - math.erf(x)) / (2 * math.sqrt(2) * density(x * math.sqrt(2)))
    return x
