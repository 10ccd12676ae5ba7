"""Noise as it is printed: never on the unsafe side of what was computed."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal


def rounded_up(value: float, digits: int = 6) -> str:
    """Return a positive number to some digits, never below it: less noise than that would miss the target.

    >>> rounded_up(26.379541), rounded_up(2.0), rounded_up(26.4161, digits=4)
    ('26.3796', '2', '26.42')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 6) -> str:
    """Return a positive number to some digits, never above it: noise that misses a target is not printed as more.

    >>> rounded_down(26.37959)
    '26.3795'
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    shortest = Decimal(repr(float(value)))  # reads back as the same float
    return f"{float(Context(prec=digits, rounding=direction).plus(shortest)):.{digits}g}"
