"""The two distributions between which one step of DP-SGD hides a record, for each neighbouring relation.

In units of the noise, with ``u = 1 / sigma``: the data set with the record gives ``(1 - q) N(0, 1) + q N(u, 1)``,
the one without ``N(0, 1)``, and the one with the opposite record ``(1 - q) N(0, 1) + q N(-u, 1)``. Their privacy
loss grows with the outcome, so that whatever is asked of it is asked of an interval of outcomes.

Source: Zhu, Dong and Wang (2022), Theorem 11, https://arxiv.org/abs/2106.08567 (add and remove apart); dp-accounting's
supplement on privacy loss distributions (replacement)
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from accountant import check
from accountant.contract import Query, Relation
from accountant.relations import reach

Losses = Float[np.ndarray, " N"]
Mixture = tuple[tuple[float, float], ...]

_REACH = 10.3  # standard deviations; a normal exceeds them with probability 4e-25


def check_step(*, noise_multiplier: float, sampling_rate: float) -> None:
    """Refuse a step of DP-SGD that is none."""
    check.positive(noise_multiplier=noise_multiplier)
    check.closed_unit(sampling_rate=sampling_rate)
    if sampling_rate == 0:
        raise ValueError("sampling_rate=0 never uses a record; give a rate above 0, or leave the step out.")


def shift(relation: Relation) -> float:
    """Return how far two neighbours' sums can lie apart, in clip norms: 1 to add or remove, 2 to replace."""
    return reach(Query.RECORD_SUM, relation)


def pairs(*, noise_multiplier: float, sampling_rate: float, relation: Relation) -> list["Pair"]:
    """Return the pairs of which one or the other is the worst, whatever the number of steps."""
    kinds = [Remove, Add] if shift(relation) == 1 else [Replace]
    return [kind(sigma=noise_multiplier, rate=sampling_rate) for kind in kinds]


@dataclass(frozen=True, kw_only=True)
class Pair(ABC):
    """Two mixtures of normals, each a tuple of (weight, mean), whose privacy loss grows with the outcome.

    Attributes:
        sigma: noise standard deviation / clip norm.
        rate: probability with which a record joins the step.
    """

    sigma: float
    rate: float

    @property
    @abstractmethod
    def upper(self) -> Mixture:
        """The distribution that outcomes are drawn from."""

    @property
    @abstractmethod
    def lower(self) -> Mixture:
        """The one they are compared with."""

    @abstractmethod
    def outcome(self, loss: Losses) -> Losses:
        """Return where the privacy loss takes these values; -inf or inf where it never does."""

    @abstractmethod
    def loss(self, outcome: float) -> float:
        """Return ``ln(upper / lower)`` at an outcome."""

    @property
    def ends(self) -> tuple[float, float]:
        """The losses between which all but a negligible part of ``upper`` lies."""
        means = [mean for _, mean in self.upper]
        return self.loss(min(means) - _REACH), self.loss(max(means) + _REACH)

    @property
    def _joined(self) -> Mixture:
        return ((1 - self.rate, 0.0), (self.rate, 1 / self.sigma))

    def _ratio(self, outcome: float) -> float:
        """Return ln of the density with the record / the density without."""
        exponent = outcome / self.sigma - 0.5 / self.sigma**2
        if self.rate == 1:
            return exponent
        if exponent < 1:
            return math.log1p(self.rate * math.expm1(exponent))
        return float(np.logaddexp(math.log1p(-self.rate), math.log(self.rate) + exponent))

    def _where_ratio(self, loss: Losses) -> Losses:
        with np.errstate(divide="ignore", over="ignore"):
            near = np.log1p(np.maximum(np.expm1(np.minimum(loss, 1.0)) / self.rate, -1.0))
        far = loss - math.log(self.rate) + np.log1p(-(1 - self.rate) * np.exp(-np.maximum(loss, 1.0)))
        return self.sigma * np.where(loss < 1, near, far) + 0.5 / self.sigma


class Remove(Pair):
    """Drawn with the record, compared with the data set without it."""

    @property
    def upper(self) -> Mixture:
        return self._joined

    @property
    def lower(self) -> Mixture:
        return ((1.0, 0.0),)

    def outcome(self, loss: Losses) -> Losses:
        return self._where_ratio(loss)

    def loss(self, outcome: float) -> float:
        return self._ratio(outcome)


class Add(Pair):
    """Drawn without the record, compared with the data set that holds it; outcomes change their sign."""

    @property
    def upper(self) -> Mixture:
        return ((1.0, 0.0),)

    @property
    def lower(self) -> Mixture:
        return tuple((weight, -mean) for weight, mean in self._joined)

    def outcome(self, loss: Losses) -> Losses:
        return -self._where_ratio(-loss)

    def loss(self, outcome: float) -> float:
        return -self._ratio(-outcome)


class Replace(Pair):
    """Drawn with a record, compared with the data set that holds its opposite."""

    @property
    def upper(self) -> Mixture:
        return self._joined

    @property
    def lower(self) -> Mixture:
        return tuple((weight, -mean) for weight, mean in self._joined)

    def outcome(self, loss: Losses) -> Losses:
        """Return ``sigma (arsinh(sinh(loss / 2) e^(1 / 2 sigma^2) (1 - q) / q) + loss / 2)``."""
        half = np.abs(loss) / 2
        with np.errstate(divide="ignore"):
            log_sinh = half + np.log(-np.expm1(-2 * half)) - math.log(2)
            scaled = log_sinh + 0.5 / self.sigma**2 + np.log1p(-self.rate) - math.log(self.rate)
        arsinh = np.logaddexp(0.5 * np.logaddexp(0.0, 2 * scaled), scaled)
        return self.sigma * np.sign(loss) * (arsinh + half)

    def loss(self, outcome: float) -> float:
        return self._ratio(outcome) - self._ratio(-outcome)


def cells(mixture: Mixture, edges: Losses) -> Float[np.ndarray, " N+1"]:
    """Return the mass of a mixture below the first edge, between all edges, and above the last."""
    total = np.zeros(len(edges) + 1)
    for weight, mean in mixture:
        centred = edges - mean
        right = centred >= 0
        tail = ndtr(-np.abs(centred))
        signed = np.where(right, -tail, tail)  # differences of the nearer tail keep their digits
        middle = np.diff(signed) + (right[1:] & ~right[:-1])
        below = 1 + signed[0] if right[0] else signed[0]
        above = -signed[-1] if right[-1] else 1 - signed[-1]
        total += weight * np.concatenate(([below], middle, [above]))
    return total
