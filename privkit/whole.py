"""Whole numbers: what a round, a client, a width or a count has to be."""

import operator

import numpy as np

from privkit.errors import InputError


def whole(name: str, value: object, *, least: int) -> int:
    """Return a value as an ``int``; anything but a whole number of at least ``least`` is refused by name.

    A truth value is no number here, and neither is a float that happens to be whole.

    >>> whole("rounds", np.int64(3), least=1)
    3
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)  # pyright: ignore[reportArgumentType]
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(f"{name}={value!r}; give a whole number of at least {least}.")
    return number
