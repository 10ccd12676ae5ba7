"""How tight a number is."""

from enum import StrEnum


class Bound(StrEnum):
    """Whether an epsilon is the mechanism's own or could be smaller."""

    EXACT = "exact"
    UPPER = "upper bound"
