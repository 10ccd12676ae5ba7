"""Bisection on a yes-or-no question."""

from collections.abc import Callable

_MOST = 10**12


def last_true(holds: Callable[[float], bool], low: float, high: float, *, tolerance: float = 1e-10) -> float:
    """Return the end of the stretch on which something holds.

    Args:
        holds: true up to some point and false beyond it.
        low: a point where it is taken to hold.
        high: a point above ``low``; if it still holds there, the stretch is doubled until it does not.
        tolerance: how close to come, relative to ``max(1, |answer|)``.

    Returns:
        A point at which it holds, no further than the tolerance below the last one; ``low`` if it never
        holds.

    >>> round(last_true(lambda x: x * x < 2, 0.0, 1.0), 8)
    1.41421356
    """
    if not holds(low):
        return low
    while holds(high):
        low, high = high, high + 2 * (high - low)
    while high - low > tolerance * max(1.0, abs(low)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def first_enough(enough: Callable[[int], bool], *, start: int = 1) -> int:
    """Return the smallest whole number from ``start`` on that is enough; once enough, all larger ones are.

    Raises:
        ValueError: a trillion is not enough.

    >>> first_enough(lambda n: n * n >= 50)
    8
    """
    if enough(start):
        return start
    low, high = start, 2 * start
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise ValueError(f"even {_MOST:.0e} are not enough; ask for less power or a larger effect.")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
