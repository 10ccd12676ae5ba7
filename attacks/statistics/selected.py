"""Was a selection made with as much noise as claimed? From the scores and the sets that were chosen."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

_FAR = 40.0  # noise scales beyond which nothing is left of a density
_POINTS = 201
_FINE = 0.02  # noise scales between two points of the integral
_STEP = 4.0
_SMALLEST = 64.0  # the smallest scale that is tried is this part of the scores' range


class Selection(NamedTuple):
    """One set of k coordinates, chosen as the k largest of scores with Laplace noise.

    Attributes:
        scores: shape [d].
        chosen: shape [d]; some of them, not all.
        scale: of the noise that is claimed, in the unit of the scores; > 0.
    """

    scores: Float[np.ndarray, " d"]
    chosen: Bool[np.ndarray, " d"]
    scale: float


def log_chance(selection: Selection, *, scale: float) -> float:
    r"""Return the logarithm of the probability that noise of some scale leads to this very set.

    .. math:: P(S) = \int \prod_{j \in S} P(X_j > t) \; d \prod_{j \notin S} P(X_j \le t)

    with X the scores with noise, by the trapezoidal rule where the integrand is (relative error below 1e-4).

    >>> pair = Selection(np.array([0.0, 0.0]), np.array([True, False]), 1.0)
    >>> round(math.exp(log_chance(pair, scale=3.0)), 4)
    0.5
    """
    x_d = selection.scores / scale
    inside_K, outside_J = x_d[selection.chosen], x_d[~selection.chosen]

    def envelope(t_T: np.ndarray) -> np.ndarray:
        above = _log_cdf(inside_K[:, None] - t_T).sum(0)
        return above + _log_cdf(t_T - outside_J[:, None]).sum(0)

    low, high = x_d.min() - _FAR, x_d.max() + _FAR
    for _ in range(3):  # log-concave: what is far below the largest value is far away from it
        t_T = np.linspace(low, high, _POINTS)
        log_T = envelope(t_T)
        kept = np.flatnonzero(log_T > log_T.max() - _FAR)
        low, high = t_T[max(kept[0] - 1, 0)], t_T[min(kept[-1] + 1, _POINTS - 1)]
    t_T = np.linspace(low, high, max(_POINTS, math.ceil((high - low) / _FINE)))
    hazard_T = _hazard(t_T - outside_J[:, None]).sum(0)
    return float(special.logsumexp(envelope(t_T) + np.log(hazard_T)) + math.log(t_T[1] - t_T[0]))


def selection_p_value(selections: Sequence[Selection]) -> float:
    """Return a p-value of "the noise has at least the claimed scale" against smaller scales.

    The likelihood ratio of any other scale against the claimed one has mean 1 if that is true, over all sets
    together, and so has the mean of several such ratios. By Markov's inequality one over it is a p-value, for any
    number of sets; it is on the safe side by a factor of a few. Scales a quarter of the claimed one, a quarter of
    that and so on are tried, until nothing is left of the noise. Sets tell little of noise that is much larger than the
    range of the scores.

    Args:
        selections: independent given the scores, at least one.

    Source: Vovk and Wang (2021), "E-values: calibration, combination and applications"
    """
    if not selections:
        raise ValueError("no sets were given; give at least one.")
    claimed = [log_chance(one, scale=one.scale) for one in selections]
    largest = max(one.scale for one in selections)
    spread = max(float(np.ptp(one.scores)) for one in selections) or largest
    steps = max(1, math.ceil(math.log(max(largest * _SMALLEST / spread, _STEP), _STEP)))
    ratios = [
        sum(
            log_chance(one, scale=one.scale / _STEP**i) - was
            for one, was in zip(selections, claimed, strict=True)
        )
        for i in range(1, steps + 1)
    ]
    return float(min(1.0, math.exp(min(0.0, math.log(steps) - float(special.logsumexp(ratios))))))


def _log_cdf(x: np.ndarray) -> np.ndarray:
    """Return the logarithm of P(Laplace <= x)."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, x - math.log(2), np.log1p(-tail))


def _hazard(x: np.ndarray) -> np.ndarray:
    """Return density / P(Laplace <= x)."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, 1.0, tail / (1 - tail))
