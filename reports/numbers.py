"""How numbers read in tables: enough digits to compare, never more than were measured."""

import math


def epsilon(value: float | None) -> str:
    """Return a privacy loss, infinity as the sign for it.

    >>> epsilon(1.0), epsilon(float("inf")), epsilon(None)
    ('1', '∞', 'n/a')
    """
    if value is None:
        return "n/a"
    return "∞" if math.isinf(value) else f"{value:.4g}"


def rate(value: float | None) -> str:
    """Return a share with three decimals.

    >>> rate(0.51234), rate(None)
    ('0.512', 'n/a')
    """
    return "n/a" if value is None else f"{value:.3f}"


def rate_or_blank(value: float | None) -> str:
    """Return a share with three decimals, or nothing where there is none to print.

    >>> rate_or_blank(0.5), rate_or_blank(None)
    ('0.500', '')
    """
    return "" if value is None else rate(value)


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """Return a value with its interval.

    >>> interval(0.5, 0.45, 0.55)
    '0.500 [0.450, 0.550]'
    """
    if value is None or low is None or high is None:
        return rate(value)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def signed(value: float | None) -> str:
    """Return a difference with its sign.

    >>> signed(0.0123), signed(-0.1), signed(-0.0001)
    ('+0.012', '-0.100', '+0.000')
    """
    return "n/a" if value is None else f"{round(value, 3) + 0.0:+.3f}"


def p_value(value: float | None) -> str:
    """Return a p-value; below 0.001 as a power of ten.

    >>> p_value(0.5), p_value(1e-9), p_value(0.0), p_value(None)
    ('0.500', '1e-09', '<1e-300', '')
    """
    if value is None:
        return ""
    if value < 1e-300:
        return "<1e-300"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}"


def size(value: float | None) -> str:
    """Return a number of bytes.

    >>> size(5120.0), size(0.0)
    ('5.1 kB', '0 B')
    """
    if value is None:
        return "n/a"
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value:.0f} B"


def delta(value: float | None) -> str:
    """Return a probability of failure.

    >>> delta(1e-5), delta(None)
    ('1e-05', 'n/a')
    """
    return "n/a" if value is None else f"{value:g}"


def count(value: int | None) -> str:
    """Return a whole number.

    >>> count(1200), count(None)
    ('1,200', 'n/a')
    """
    return "n/a" if value is None else f"{value:,}"


def rounded(value: float | None) -> str:
    """Return a number of any size with three digits.

    >>> rounded(0.4), rounded(123.45), rounded(None)
    ('0.400', '123', 'n/a')
    """
    return "n/a" if value is None else f"{value:#.3g}".rstrip(".")


def seconds(value: float | None) -> str:
    """Return a time.

    >>> seconds(0.512), seconds(None)
    ('0.5', 'n/a')
    """
    return "n/a" if value is None else f"{value:.1f}"
