"""The privacy of the mechanisms that cases are about."""

import math
from dataclasses import dataclass
from typing import Any

from accountant import bounded_range, check, gaussian, joint, laplace, rdp, subsampled, zcdp
from accountant.contract import Relation
from accountant.joint_curve import JointCurve
from accountant.normal import quantile_from_log
from accountant.selfcheck.privacy import NotUnderstoodError, Privacy
from accountant.tradeoff import AbstractCurve, ApproximateCurve, GaussianCurve


@dataclass(frozen=True, kw_only=True)
class GaussianPrivacy(Privacy):
    """Gaussian noise.

    Attributes:
        parts: noise multipliers, each with how often it ran; groups of coordinates count as parts.
    """

    parts: tuple[tuple[float, int], ...]

    @property
    def total_mu(self) -> float:
        """Return mu of all parts together."""
        return math.hypot(*(gaussian.mu_from_sigma(sigma=sigma, rounds=times) for sigma, times in self.parts))

    def epsilon(self, *, delta: float) -> float:
        return gaussian.epsilon_from_mu(mu=self.total_mu, delta=delta)

    def log_delta(self, *, epsilon: float) -> float:
        return gaussian.log_delta_from_mu(epsilon=epsilon, mu=self.total_mu)

    def rho(self) -> float:
        return zcdp.rho_from_mu(mu=self.total_mu)

    def mu(self) -> float:
        return self.total_mu

    def curve(self) -> AbstractCurve:
        return GaussianCurve(mu=self.total_mu)


@dataclass(frozen=True, kw_only=True)
class PurePrivacy(Privacy):
    """Pure mechanisms, next to Gaussian noise if ``total_mu`` is above 0.

    Attributes:
        eps0: of each.
        times: how many.
        total_mu: of the Gaussian part.
        each_lost: probability with which each shows everything: it is then (eps0, each_lost)-DP.
    """

    eps0: float
    times: int
    total_mu: float = 0.0
    each_lost: float = 0.0

    def epsilon(self, *, delta: float) -> float:
        left = delta if self.each_lost == 0 else 1 - (1 - delta) / self._kept
        return joint.epsilon(delta=left, mu=self.total_mu, pure={self.eps0: self.times})

    def log_delta(self, *, epsilon: float) -> float:
        log_delta = joint.log_delta(epsilon=epsilon, mu=self.total_mu, pure={self.eps0: self.times})
        return log_delta if self.each_lost == 0 else math.log1p(self._kept * math.expm1(log_delta))

    def rho(self) -> float:
        self._refuse_lost()
        pure = self.times * zcdp.rho_from_pure_epsilon(epsilon=self.eps0)
        return pure + zcdp.rho_from_mu(mu=self.total_mu)

    def mu(self) -> float:
        self._refuse_lost()
        return math.hypot(self.total_mu, joint.gaussian_equivalent({self.eps0: self.times}))

    def curve(self) -> AbstractCurve:
        self._refuse_lost()
        return JointCurve(mu=self.total_mu, pure=((self.eps0, self.times),))

    @property
    def _kept(self) -> float:
        check.closed_unit(delta0=self.each_lost)
        return (1 - self.each_lost) ** self.times

    def _refuse_lost(self) -> None:
        if self.each_lost > 0:
            raise NotUnderstoodError(f"only epsilon and delta are known of {self!r}")


@dataclass(frozen=True, kw_only=True)
class LaplacePrivacy(Privacy):
    """``times`` rounds of Laplace noise, next to Gaussian noise if ``total_mu`` is above 0."""

    eps0: float
    times: int
    total_mu: float = 0.0

    def epsilon(self, *, delta: float) -> float:
        return laplace.epsilon(delta=delta, eps0=self.eps0, rounds=self.times, mu=self.total_mu)

    def log_delta(self, *, epsilon: float) -> float:
        return laplace.log_delta(epsilon=epsilon, eps0=self.eps0, rounds=self.times, mu=self.total_mu)

    def rho(self) -> float:
        return self.times * zcdp.rho_from_laplace(epsilon=self.eps0) + zcdp.rho_from_mu(mu=self.total_mu)

    def mu(self) -> float:
        """Return it by ``2 Phi^{-1}(1 - e^{-s/2} / 2)`` per round: the worst point of its curve is the middle."""
        once = -2 * quantile_from_log(-self.eps0 / 2 - math.log(2))
        return math.hypot(self.total_mu, math.sqrt(self.times) * once)


@dataclass(frozen=True, kw_only=True)
class RangePrivacy(Privacy):
    """``times`` bounded-range mechanisms, next to Gaussian noise if ``total_mu`` is above 0."""

    eta: float
    times: int
    total_mu: float = 0.0

    def epsilon(self, *, delta: float) -> float:
        as_gaussian = gaussian.epsilon_from_mu(mu=self.mu(), delta=delta)
        return min(as_gaussian, zcdp.epsilon_from_rho(rho=self.rho(), delta=delta))

    def rho(self) -> float:
        return self.times * bounded_range.rho(eta=self.eta) + zcdp.rho_from_mu(mu=self.total_mu)

    def mu(self) -> float:
        return math.hypot(self.total_mu, math.sqrt(self.times) * bounded_range.mu(eta=self.eta))


@dataclass(frozen=True, kw_only=True)
class ConcentratedPrivacy(Privacy):
    """A mechanism of which only its zCDP constant is known."""

    total_rho: float

    def epsilon(self, *, delta: float) -> float:
        return rdp.epsilon_best(mu=math.sqrt(2 * self.total_rho), delta=delta)

    def rho(self) -> float:
        return self.total_rho


@dataclass(frozen=True, kw_only=True)
class ApproximatePrivacy(Privacy):
    """A mechanism of which only one (epsilon, delta) is known."""

    at_epsilon: float
    at_delta: float

    def curve(self) -> AbstractCurve:
        return ApproximateCurve(epsilon=self.at_epsilon, delta=self.at_delta)

    def advantage(self) -> float:
        return self.curve().advantage


@dataclass(frozen=True, kw_only=True)
class SubsampledPrivacy(Privacy):
    """Gaussian noise on batches that every record joins with probability ``sampling_rate``."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    relation: Relation = Relation.ADD_REMOVE

    def epsilon(self, *, delta: float) -> float:
        return subsampled.epsilon(**self._step, delta=delta).epsilon

    def log_delta(self, *, epsilon: float) -> float:
        return math.log(subsampled.delta(**self._step, epsilon=epsilon))

    @property
    def _step(self) -> dict[str, Any]:
        return {
            "noise_multiplier": self.noise_multiplier,
            "sampling_rate": self.sampling_rate,
            "steps": self.steps,
            "relation": self.relation,
        }
