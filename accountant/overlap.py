r"""How much more often a one-shot selection takes a score that should be in than one that should not.

With the noise held fixed, raising a score of the true top-k or lowering one outside it never loses a member of it, so
the best case has ``k`` scores at ``H`` and the rest at 0. Let ``x`` be a noisy score at ``H`` and ``z`` one at 0, in
units of the noise's scale, ``S_1``, ``S_0`` their survival functions, ``f_1``, ``f_0`` their densities and
``g_{a,b}(y)`` the chance that exactly ``k - 1`` of ``a`` scores like ``x`` and ``b`` like ``z`` exceed ``y``. Then

.. math:: P(x\ \text{in}) - P(z\ \text{in}) =
   \int (S_1 - S_0) \left[(k - 1) f_1 g_{k-2,\,d-k} + (d - k + 1) f_0 g_{k-1,\,d-k-1}\right] dy,

from integrating by parts ``P(in) = integral of f(y) P(fewer than k others exceed y)``. Nothing in it is negative, so
a gap as small as 1e-12 keeps its digits.
"""

import math

import numpy as np
from jaxtyping import Float

from accountant.score_noise import AbstractScoreNoise

_FAR = 80.0  # a score this many scales above the others is missed with probability e^-80
_REACH = 6.5  # square roots of a count further apart than this have probability e^-42 (Chernoff)
_PANEL = 1.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def gap(noise: AbstractScoreNoise, *, k: int, dim: int, shift: float) -> float:
    """Return P(a score at ``shift`` is in) - P(a score at 0 is in), k of them against dim - k; in [0, 1].

    Args:
        noise: on every score.
        k: how many are at ``shift``, and are selected; in 1..dim-1.
        dim: all of them.
        shift: in units of the noise's scale, > 0.

    Returns:
        To a relative error below 1e-9.
    """
    if (
        noise.symmetric
    ):  # reversing all signs swaps the roles of the k and of the d - k without changing the gap
        k = min(k, dim - k)
    shift = min(shift, _FAR)
    y_Q, weight_Q = _quadrature(noise, k, dim, shift)
    low, high = y_Q, y_Q - shift
    density = (dim - k + 1) * noise.density(low) * _exactly(noise, k - 1, k - 1, dim - k - 1, low, high)
    if k > 1:
        density += (k - 1) * noise.density(high) * _exactly(noise, k - 1, k - 2, dim - k, low, high)
    return min(float(np.sum(weight_Q * noise.survival_drop(y_Q, shift) * density)), 1.0)


def _exactly(
    noise: AbstractScoreNoise,
    wanted: int,
    of_high: int,
    of_low: int,
    low_Q: Float[np.ndarray, " Q"],
    high_Q: Float[np.ndarray, " Q"],
) -> Float[np.ndarray, " Q"]:
    """Return P(``wanted`` of the high and low scores exceed a point) at each point."""
    at_least = max(wanted - of_low, 0)
    n_N = np.arange(at_least, min(wanted, of_high) + 1)
    log_mass_QN = _log_binomial(noise, n_N, of_high, high_Q) + _log_binomial(
        noise, wanted - n_N, of_low, low_Q
    )
    return np.exp(log_mass_QN).sum(axis=1)


def _log_binomial(
    noise: AbstractScoreNoise, hits_N: np.ndarray, times: int, y_Q: Float[np.ndarray, " Q"]
) -> Float[np.ndarray, "Q N"]:
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, times + 1)))])
    ways_N = log_factorial[times] - log_factorial[hits_N] - log_factorial[times - hits_N]
    return ways_N + np.outer(noise.log_survival(y_Q), hits_N) + np.outer(noise.log_cdf(y_Q), times - hits_N)


def _quadrature(
    noise: AbstractScoreNoise, k: int, dim: int, shift: float
) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, " Q"]]:
    """Return points and weights of Gauss-Legendre panels, narrow where the k-th largest score can be.

    The square root of the number of scores above y has a standard deviation of at most one half.
    """
    y_Y = np.linspace(noise.low, shift + noise.high, 20_001)
    above_Y = (k - 1) * np.exp(noise.log_survival(y_Y - shift)) + (dim - k) * np.exp(noise.log_survival(y_Y))
    root = math.sqrt(k) + np.linspace(-_REACH, _REACH, 18)
    levels = np.interp(-(root[root > 0][::-1] ** 2), -above_Y, y_Y)
    first = levels[0]
    last = levels[-1] if root[0] > 0 else y_Y[-1]
    edges = np.unique(np.concatenate([levels, np.arange(noise.low, y_Y[-1] + _PANEL, _PANEL), [0.0, shift]]))
    edges = np.unique(np.concatenate([[first], edges[(edges > first) & (edges < last)], [last]]))
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()
