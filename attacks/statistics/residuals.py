"""Is the noise what was claimed? The white-box check of an auditor who holds the vectors before noise."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import special

from accountant import check


class Squares(NamedTuple):
    """How large standardised noise is: all that a test of its scale reads.

    Attributes:
        total: sum of squares of noise / claimed standard deviation.
        coordinates: numbers behind it, at least one.
    """

    total: float
    coordinates: int

    @classmethod
    def of(cls, standardised_D: Float[np.ndarray, " D"]) -> "Squares":
        """Return that of some noise, at least one number."""
        if not len(standardised_D):
            raise ValueError("no residuals: give at least one released coordinate with its clean value.")
        return cls(float(np.square(standardised_D, dtype=np.float64).sum()), len(standardised_D))

    def with_more(self, other: "Squares") -> "Squares":
        """Return that of both together."""
        return Squares(self.total + other.total, self.coordinates + other.coordinates)

    @property
    def ratio(self) -> float:
        """Return the standard deviation of the noise over that claimed."""
        return float(np.sqrt(self.total / self.coordinates))

    @property
    def p_value(self) -> float:
        """Return the p-value of :func:`scale_p_value`."""
        squares = self.coordinates * self.ratio**2
        return float(special.gammainc(self.coordinates / 2, squares / 2))


def scale_ratio(standardised_D: Float[np.ndarray, " D"]) -> float:
    """Return the standard deviation of the noise over that claimed.

    Args:
        standardised_D: (released - clean) / claimed standard deviation, per coordinate, at least one.
    """
    return Squares.of(standardised_D).ratio


def scale_p_value(standardised_D: Float[np.ndarray, " D"]) -> float:
    """Return the one-sided p-value of "the noise is at least as large as claimed".

    Exact for independent Gaussian noise (chi-square with D degrees of freedom); blind to a missing clip
    and to noise that is reused.
    """
    return Squares.of(standardised_D).p_value


def least_scale(parts: Sequence[Float[np.ndarray, " _"]]) -> tuple[int, float]:
    """Return which of some parts of the noise is the most suspicious, and a p-value of "none is smaller than claimed".

    Args:
        parts: standardised residuals, independent or not, at least one part of at least one coordinate each.

    Returns:
        Number of the part with the smallest p-value, and that p-value times the number of parts, 1 at most.
    """
    p_P = np.array([scale_p_value(part) for part in parts])
    return int(p_P.argmin()), float(min(1.0, len(p_P) * p_P.min()))


def scale_power(coordinates: int, *, significance: float, ratio: float = 0.5) -> float:
    """Return the probability that :func:`scale_p_value` falls below a level if the noise is too small.

    Args:
        coordinates: residual coordinates, D.
        significance: level of the test, in (0, 1).
        ratio: true standard deviation / claimed one, in (0, 1].

    >>> round(scale_power(34, significance=0.001), 2)
    0.99
    """
    check.count(coordinates=coordinates)
    check.open_unit(significance=significance)
    check.positive(ratio=ratio)
    critical = special.gammaincinv(coordinates / 2, significance)
    return float(special.gammainc(coordinates / 2, critical / ratio**2))
