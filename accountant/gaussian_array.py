"""ln delta of mu-GDP for a whole array of epsilons: the vectorised twin of :mod:`accountant.gaussian`."""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import erfcx

from accountant.normal import LOG_SQRT_2PI

_FLAT = 0.03  # below this mu, R(x) - R(y) is taken from R's derivatives
_FAR = 1e3  # beyond this x, R(x) - R(y) is (y - x) / (x y)


def log_delta_from_mu(epsilon: Float[np.ndarray, " N"], mu: float) -> Float[np.ndarray, " N"]:
    """Return ln delta(epsilon) of mu-GDP, mu > 0, for finite epsilons of either sign.

    Accurate to about 1e-12 absolute where delta is representable, to 1e-11 relative below.
    """
    size = np.abs(epsilon)
    x = np.minimum(size / mu - mu / 2, 1e150)  # its square stays finite
    log_delta = np.log(_drop(np.maximum(x, -1.0), mu)) - 0.5 * x * x - LOG_SQRT_2PI
    if mu > 2:  # x can lie below -1, where delta is 1 minus something small
        log_delta = np.where(x < -1, _near_one(np.minimum(x, -1.0), mu), log_delta)
    # delta(-e) = 1 - exp(-e) + exp(-e) delta(e)
    mirrored = np.log(np.exp(log_delta - size) - np.expm1(-size))
    return np.where(epsilon < 0, mirrored, log_delta)


def _mills_ratio(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _drop(x: Float[np.ndarray, " N"], mu: float) -> Float[np.ndarray, " N"]:
    """Return R(x) - R(x + mu) for x >= -1."""
    if mu >= _FLAT:
        drop = _mills_ratio(x) - _mills_ratio(x + mu)
    else:
        middle, square = x + mu / 2, mu * mu / 4
        even = _mills_ratio(middle)  # three terms of the Taylor series in accountant.normal.mills_drop
        odd = total = 1 - middle * even
        for order in (2, 4):
            even = (even - middle * odd) / order
            odd = (odd - middle * even) / (order + 1)
            total = total + odd * square ** (order // 2)
        drop = mu * total
    return np.where(x < _FAR, drop, mu / np.maximum(x * (x + mu), 1.0))


def _near_one(x: Float[np.ndarray, " N"], mu: float) -> Float[np.ndarray, " N"]:
    """Return ln delta for x <= -1, from 1 - delta = phi(x) (R(-x) + R(x + mu))."""
    density = np.exp(-0.5 * x * x - LOG_SQRT_2PI)
    return np.log1p(-density * (_mills_ratio(-x) + _mills_ratio(x + mu)))
