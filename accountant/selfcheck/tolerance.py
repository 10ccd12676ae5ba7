"""How close an answer has to come, read from the words of a reference case."""

import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

_SIZE = re.compile(
    r"^(?P<scale>rel(?:ative)?|abs(?:olute)?)?\s*(?P<size>\d*\.?\d+(?:e[+-]?\d+)?)$", re.IGNORECASE
)
_SAFE_SIDE = re.compile(r"(?P<side>>=|<=)\s*value")
_ROUNDING = 1e-12  # "exact" leaves this much, relative, for the rounding of a float64


class UnknownToleranceError(ValueError):
    """The words of a tolerance say nothing that can be checked."""


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """The largest difference that is still agreement.

    Attributes:
        relative: of the expected value.
        absolute: in its unit; the larger of the two counts.
        at_least: whether the answer may not be below the expected value, not even by rounding.
        at_most: whether it may not be above.
    """

    relative: float = 0.0
    absolute: float = 0.0
    at_least: bool = False
    at_most: bool = False

    def agrees(self, found: float, expected: str) -> bool:
        """Return whether a finite or infinite answer is close enough to a decimal number of any length.

        >>> Tolerance(relative=1e-8, at_least=True).agrees(2.0, "2.00000000000000000001")
        False
        """
        if not math.isfinite(found) or not math.isfinite(float(expected)):
            return found == float(expected)
        exact, answer = Decimal(expected), Decimal(found)
        if (self.at_least and answer < exact) or (self.at_most and answer > exact):
            return False
        allowed = max(Decimal(self.relative) * abs(exact), Decimal(self.absolute))
        return abs(answer - exact) <= allowed


def parse(words: str) -> Tolerance:
    """Return the tolerance that a case states.

    ======================================================  ================================================
    words                                                   meaning
    ======================================================  ================================================
    ``1e-9``, ``abs 1e-9``                                  absolute
    ``rel 1e-9``                                            relative to the expected value
    ``exact``, ``-``                                        to the rounding of a float64
    any of these ``; must satisfy sigma>=value (safe side)``  and not below (or ``<=``: not above) it either
    ======================================================  ================================================

    Raises:
        UnknownToleranceError: anything else.

    >>> parse("rel 1e-8; must satisfy sigma>=value (safe side)")
    Tolerance(relative=1e-08, absolute=0.0, at_least=True, at_most=False)
    """
    size, _, condition = words.partition(";")
    side = _SAFE_SIDE.search(condition)
    if condition.strip() and side is None:
        raise UnknownToleranceError(f"the tolerance {words!r} sets a condition that is not known")
    sides = {
        "at_least": side is not None and side["side"] == ">=",
        "at_most": side is not None and side["side"] == "<=",
    }
    if size.strip() in _EXACT:
        return Tolerance(relative=_ROUNDING, **sides)
    found = _SIZE.match(size.strip())
    if found is None or math.isinf(float(found["size"])):
        raise UnknownToleranceError(f"the tolerance {words!r} is not known")
    named = "relative" if (found["scale"] or "abs").lower().startswith("rel") else "absolute"
    return Tolerance(**{named: float(found["size"])}, **sides)


_EXACT = ("exact", "-", "")


def is_decimal(text: str) -> bool:
    """Return whether a text is one decimal number, an infinity or NaN."""
    try:
        Decimal(text.strip())
    except InvalidOperation:
        return False
    return True
