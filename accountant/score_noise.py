"""Kinds of noise on a score, in units of their scale: what a one-shot selection needs to know of each.

``survival_drop`` is computed without subtracting two nearly equal numbers, because a selection that hardly finds
anything is decided by it.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, ndtr

Values = Float[np.ndarray, " Q"]
_NEVER = -1e300  # ln of a probability of 0; unlike -inf, 0 times it is 0
_CLOSE = 1e-3  # below it, two terms of a Taylor series leave no error


@dataclass(frozen=True)
class AbstractScoreNoise(ABC):
    """A continuous distribution.

    Attributes:
        std: its standard deviation, in units of its scale.
        low, high: the range outside which it has a mass of about e^-40.
        symmetric: whether its negative has the same distribution.
    """

    std: ClassVar[float]
    low: ClassVar[float]
    high: ClassVar[float]
    symmetric: ClassVar[bool] = False

    @abstractmethod
    def density(self, y: Values) -> Values:
        """Return the density at each value."""

    @abstractmethod
    def log_survival(self, y: Values) -> Values:
        """Return ln of the chance to exceed each value."""

    @abstractmethod
    def log_cdf(self, y: Values) -> Values:
        """Return ln of the chance to stay below each value."""

    @abstractmethod
    def survival_drop(self, y: Values, shift: float) -> Values:
        """Return S(y - shift) - S(y) >= 0 for a survival function S and a shift > 0."""


@dataclass(frozen=True)
class LaplaceNoise(AbstractScoreNoise):
    """Density ``e^-|y| / 2``."""

    std = math.sqrt(2)
    low, high = -40.0, 40.0
    symmetric = True

    def density(self, y: Values) -> Values:
        return np.exp(-np.abs(y)) / 2

    def log_survival(self, y: Values) -> Values:
        return np.where(y >= 0, -y - math.log(2), np.log1p(-np.exp(-np.abs(y)) / 2))

    def log_cdf(self, y: Values) -> Values:
        return self.log_survival(-y)

    def survival_drop(self, y: Values, shift: float) -> Values:
        inside = np.clip(y, 0.0, shift)
        between = -(np.expm1(inside - shift) + np.expm1(-inside)) / 2
        beyond = -math.expm1(-shift) / 2 * np.exp(np.minimum(y, 0.0) - np.maximum(y - shift, 0.0))
        return np.where((y > 0) & (y < shift), between, beyond)


@dataclass(frozen=True)
class ExponentialNoise(AbstractScoreNoise):
    """Density ``e^-y`` above 0."""

    std = 1.0
    low, high = 0.0, 40.0

    def density(self, y: Values) -> Values:
        return np.where(y >= 0, np.exp(-np.maximum(y, 0.0)), 0.0)

    def log_survival(self, y: Values) -> Values:
        return -np.maximum(y, 0.0)

    def log_cdf(self, y: Values) -> Values:
        above = -np.expm1(-np.maximum(y, 0.0))
        return np.where(above > 0, np.log(np.where(above > 0, above, 1.0)), _NEVER)

    def survival_drop(self, y: Values, shift: float) -> Values:
        beyond = -math.expm1(-shift) * np.exp(-np.maximum(y - shift, 0.0))
        return np.where(y >= shift, beyond, -np.expm1(-np.maximum(y, 0.0)))


@dataclass(frozen=True)
class GumbelNoise(AbstractScoreNoise):
    """Distribution function ``exp(-e^-y)``."""

    std = math.pi / math.sqrt(6)
    low, high = -3.7, 40.0

    def density(self, y: Values) -> Values:
        return np.exp(-y - np.exp(-y))

    def log_survival(self, y: Values) -> Values:
        return np.log(-np.expm1(-np.exp(-y)))

    def log_cdf(self, y: Values) -> Values:
        return -np.exp(-y)

    def survival_drop(self, y: Values, shift: float) -> Values:
        return np.exp(-np.exp(-y)) * -np.expm1(-np.exp(-y) * math.expm1(shift))


@dataclass(frozen=True)
class GaussianNoise(AbstractScoreNoise):
    """The standard normal distribution."""

    std = 1.0
    low, high = -9.0, 9.0
    symmetric = True

    def density(self, y: Values) -> Values:
        return np.exp(-y * y / 2) / math.sqrt(2 * math.pi)

    def log_survival(self, y: Values) -> Values:
        return log_ndtr(-y)

    def log_cdf(self, y: Values) -> Values:
        return log_ndtr(y)

    def survival_drop(self, y: Values, shift: float) -> Values:
        middle = y - shift / 2
        if shift < _CLOSE:
            return shift * self.density(middle) * (1 + shift**2 * (middle**2 - 1) / 24)
        # on the side where both are small, so that neither is a rounded 1
        upper, lower = np.where(middle > 0, shift - y, y), np.where(middle > 0, -y, y - shift)
        return ndtr(upper) - ndtr(lower)
