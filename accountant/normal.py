"""Standard normal distribution, as scalar functions that stay accurate far into the tails.

Everything rests on the Mills ratio ``R(x) = (1 - Phi(x)) / phi(x)``, which neither overflows nor
underflows for ``x >= 0``: a tail is ``phi * R``, and its logarithm never sees a vanished number.
"""

import math
from statistics import NormalDist

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_STANDARD = NormalDist()
_TAIL = 3.0  # beyond it erfc's rounded argument costs digits, and the continued fraction is short
_ORDERS = 23  # Taylor terms of R that matter on a half-width of 1/2


def density(x: float) -> float:
    """Return phi(x); 0.0 once it underflows, beyond ``|x|`` of about 38.6.

    The square is split so that the exponential does not multiply its rounding error.
    """
    near = math.trunc(16 * x) / 16 if abs(x) < 40 else x
    return math.exp(-0.5 * near * near) * math.exp(-0.5 * (x - near) * (x + near)) / math.sqrt(2 * math.pi)


def log_density(x: float) -> float:
    """Return ln phi(x)."""
    return -0.5 * x * x - LOG_SQRT_2PI


def cdf(x: float) -> float:
    """Return Phi(x), in [0, 1], to a relative error near 1e-15 until it underflows."""
    if x < -_TAIL:
        return density(x) * mills_ratio(-x)
    return 0.5 * math.erfc(-x / math.sqrt(2))


def log_cdf(x: float) -> float:
    """Return ln Phi(x), at most 0, to a relative error near 1e-15.

    >>> round(log_cdf(-100.0), 9)
    -5005.524208694
    """
    if x < -_TAIL:
        return log_density(x) + math.log(mills_ratio(-x))
    return math.log(cdf(x)) if x < 0 else math.log1p(-cdf(-x))


def quantile(p: float) -> float:
    """Return the x with Phi(x) = p, to a relative error near 1e-15; p strictly between 0 and 1.

    Above one half, ask for the quantile of ``1 - p`` where it is known better than p.
    """
    return _STANDARD.inv_cdf(p)


def quantile_from_log(log_p: float) -> float:
    """Return the x with ln Phi(x) = log_p, also where Phi(x) itself underflows; log_p below 0."""
    if log_p > -700:
        return quantile(math.exp(log_p))
    x = -math.sqrt(-2 * log_p)
    for _ in range(5):  # Newton on a concave function, from its left
        x += (log_p - log_cdf(x)) * mills_ratio(-x)
    return x


def mills_ratio(x: float) -> float:
    """Return (1 - Phi(x)) / phi(x), > 0 and decreasing; inf once it overflows, below about -38.

    Source: Abramowitz and Stegun (1964), 26.2.14 (continued fraction of Laplace).
    """
    if x >= _TAIL:
        return 1 / (x + _ratio(x))
    below = density(x)
    return cdf(-x) / below if below > 0 else math.inf


def _ratio(x: float) -> float:
    """Return ``1/(x + 2/(x + 3/(x + ...)))``, that is c_1 / c_0 below, for x >= 3."""
    value = 0.0
    for order in range(_depth(x), 1, -1):
        value = 1 / (x + order * value)
    return value


def _depth(x: float) -> int:
    """Return how many levels of the fraction reach full precision at x >= 3."""
    return 12 + int(400 / (x * x))


def mills_drop(middle: float, half_width: float) -> float:
    r"""Return R(middle - half_width) - R(middle + half_width) without subtracting the two.

    It is the odd part of R's Taylor series, ``2 sum_{n odd} c_n h^n`` with
    ``c_n = (-1)^n R^(n)(middle) / n! > 0``, where ``c_{n-1} = m c_n + (n+1) c_{n+1}`` and ``c_{-1} = 1``.

    Args:
        middle: centre m of the interval, at least 0.
        half_width: half its length h, in [0, 1/2].

    Returns:
        A number of at least 0, to a relative error near 1e-14.
    """
    if middle >= _TAIL:
        return _drop_downwards(middle, half_width)
    return _drop_upwards(middle, half_width)


def _drop_downwards(middle: float, half_width: float) -> float:
    # The c_n are the small solution of their recurrence: stable from high orders to low ones.
    square, ratio, series = half_width * half_width, 0.0, 1.0
    for order in range(_depth(middle) + _ORDERS, _ORDERS, -1):
        ratio = 1 / (middle + (order + 1) * ratio)
    for order in range(_ORDERS, 1, -2):
        odd = 1 / (middle + (order + 1) * ratio)
        ratio = 1 / (middle + order * odd)
        series = 1 + odd * ratio * square * series
    first = 1 / (middle + 2 * ratio)
    return 2 * half_width * series * first / (middle + first)


def _drop_upwards(middle: float, half_width: float) -> float:
    # Near 0 both solutions are of one size, and a few steps upwards lose next to nothing.
    even = mills_ratio(middle)
    odd = 1 - middle * even
    total, power = odd, 1.0
    for order in range(2, _ORDERS, 2):
        even = (even - middle * odd) / order
        odd = (odd - middle * even) / (order + 1)
        power *= half_width * half_width
        total += odd * power
    return 2 * half_width * total
