"""Numbers as reference cases write them."""

import math
import re
from collections.abc import Callable
from typing import Any

from accountant.gaussian import mu_from_epsilon

_PATTERNS: tuple[tuple[str, Callable[..., float]], ...] = (
    (r"sqrt\(?([^()]+)\)?", lambda inner: math.sqrt(number(inner))),
    (r"(?:ln|log)\(?([^()]+)\)?", lambda inner: math.log(number(inner))),
    (r"mu\(([^,]+),([^,]+)\)", lambda eps, delta: mu_from_epsilon(epsilon=number(eps), delta=number(delta))),
    (r"([^/]+)/([^/]+)", lambda above, below: number(above) / number(below)),
    (r"([^*]+)\*([^*]+)", lambda left, right: number(left) * number(right)),
)


_MOST_ORDERS = 100_000


class NotANumberError(ValueError):
    """A text is no number."""


def number(value: Any) -> float:
    """Return a number that a case writes as one, or as a short formula.

    Args:
        value: a number, or a text such as "1e-5", "nan", "1/500", "sqrt2", "ln(3)" or "mu(1,1e-5)", the mu of an
            (epsilon, delta).

    Raises:
        NotANumberError: anything else.

    >>> number("1/500"), number("sqrt2"), round(number("mu(1,1e-5)"), 6)
    (0.002, 1.4142135623730951, 0.268051)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _float(value)
    text = str(value).strip()
    try:
        return float(text)
    except ValueError:
        pass
    for pattern, compute in _PATTERNS:
        found = re.fullmatch(pattern, text)
        if found:
            try:
                return compute(*found.groups())
            except (ZeroDivisionError, ValueError):
                break
    raise NotANumberError(f"{value!r} is not a number")


def _float(value: float | int) -> float:
    try:
        return float(value)
    except OverflowError:
        raise NotANumberError("a whole number of that many digits is not a number here") from None


def whole(value: Any) -> int:
    """Return a whole number; anything else is refused as in :func:`number`."""
    found = number(value)
    if not math.isfinite(found) or found != math.floor(found):
        raise NotANumberError(f"{value!r} is not a whole number")
    return int(found)


def grid(text: Any) -> tuple[float, ...]:
    """Return numbers listed or given as ranges: ``1.1..10.9 step .1, 11..63, 128,256``.

    Args:
        text: the list as one text, or a list of numbers.

    >>> grid("1.5..2.5 step .5, 8")
    (1.5, 2.0, 2.5, 8.0)
    """
    if isinstance(text, list | tuple):
        return tuple(number(value) for value in text)
    found: list[float] = []
    for part in str(text).split(","):
        ends, _, step = part.partition("step")
        low, _, high = ends.partition("..")
        spacing = number(step) if step.strip() else 1.0
        if not spacing > 0:
            raise NotANumberError(f"{text!r} has a step that is not above 0")
        count = math.floor((number(high) - number(low)) / spacing + 1e-9) if high.strip() else 0
        if not len(found) + count < _MOST_ORDERS:
            raise NotANumberError(f"{text!r} lists more than {_MOST_ORDERS:,} numbers")
        found += [round(number(low) + index * spacing, 12) for index in range(count + 1)]
    return tuple(found)
