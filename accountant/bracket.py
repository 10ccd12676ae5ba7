"""Solving a monotone condition and coming back with its safe side."""

import math
from collections.abc import Callable

_ROUNDS = 200  # Illinois steps need about six, bisection about fifty; never reached


def safe_root(
    excess: Callable[[float], float], *, safe: float, unsafe: float, tolerance: float = 1e-13
) -> float:
    """Return a point between two ends where ``excess`` is at most 0, next to where it turns positive.

    Args:
        excess: monotone; at most 0 at ``safe``, above 0 at ``unsafe``; may be infinite.
        safe: the end that is allowed.
        unsafe: the end that is not; if it turns out to be allowed, it is the answer.
        tolerance: relative distance from the answer to a point that is not allowed.

    Raises:
        ValueError: ``excess`` is above 0 at ``safe``, so there is nothing to return.

    Source: Dowell and Jarratt (1971), the Illinois method.
    """
    below, above = excess(safe), excess(unsafe)
    if above <= 0:
        return unsafe
    if not below <= 0:
        raise ValueError(f"safe={safe} is not safe: the excess there is {below}, above 0.")
    repeated = 0
    for _ in range(_ROUNDS):
        gap = unsafe - safe
        margin = tolerance * max(abs(safe), abs(unsafe))
        if abs(gap) <= margin:
            break
        share = below / (below - above) if math.isfinite(below - above) else 0.5
        edge = 0.5 * margin / abs(gap)  # step just beyond the root, not back onto a known end
        point = safe + gap * min(max(share, edge), 1 - edge)
        value = excess(point)
        if value <= 0:
            safe, below = point, value
            repeated = max(repeated, 0) + 1
            above = above / 2 if repeated > 1 else above
        else:
            unsafe, above = point, value
            repeated = min(repeated, 0) - 1
            below = below / 2 if repeated < -1 else below
    return safe
