"""Checks that refuse a wrong number in one sentence: its name, its value, what is wanted."""

import math
from typing import Any

_LARGEST_COUNT = 2**53


def _number(name: str, value: Any) -> float:
    if (
        isinstance(value, bool)
        or type(value).__name__ in ("bool", "bool_")
        or not hasattr(value, "__float__")
    ):
        raise TypeError(f"{name}={value!r} is not a number; give one.")
    try:
        number = float(value)
    except (OverflowError, TypeError) as error:
        raise ValueError(f"{name} is no number that a float can hold ({error}); give one.") from None
    if math.isnan(number):
        raise ValueError(f"{name} is NaN; give a number.")
    return number


def positive(**named: Any) -> None:
    """Refuse any value that is not a finite number above zero."""
    for name, value in named.items():
        if not 0 < _number(name, value) < math.inf:
            raise ValueError(f"{name}={value} must be finite and above 0.")


def non_negative(**named: Any) -> None:
    """Refuse any value that is not a finite number, zero or above."""
    for name, value in named.items():
        if not 0 <= _number(name, value) < math.inf:
            raise ValueError(f"{name}={value} must be finite and at least 0.")


def finite(**named: Any) -> None:
    """Refuse any value that is not a finite number."""
    for name, value in named.items():
        if not math.isfinite(_number(name, value)):
            raise ValueError(f"{name}={value} must be finite.")


def open_unit(**named: Any) -> None:
    """Refuse any value outside (0, 1)."""
    for name, value in named.items():
        if not 0 < _number(name, value) < 1:
            raise ValueError(f"{name}={value} must lie strictly between 0 and 1.")


def closed_unit(**named: Any) -> None:
    """Refuse any value outside [0, 1]."""
    for name, value in named.items():
        if not 0 <= _number(name, value) <= 1:
            raise ValueError(f"{name}={value} must lie between 0 and 1.")


def count(**named: Any) -> None:
    """Refuse any value that is not a whole number of at least 1, or too large to be counted exactly."""
    for name, value in named.items():
        if isinstance(value, int) and not isinstance(value, bool) and value > _LARGEST_COUNT:
            raise ValueError(f"{name} is above 2^53, beyond which floats lose whole numbers; give fewer.")
        number = _number(name, value)
        if not 1 <= number < math.inf or number != math.floor(number):
            raise ValueError(f"{name}={value} must be a whole number of at least 1.")
        if number > _LARGEST_COUNT:
            raise ValueError(
                f"{name}={value} is above 2^53, beyond which floats lose whole numbers; give fewer."
            )
