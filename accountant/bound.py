"""How tight a number is."""

from enum import StrEnum


class Bound(StrEnum):
    """Whether an epsilon is the mechanism's own or could be smaller."""

    EXACT = "exact"
    UPPER = "upper bound"

    def of(self, method: str) -> str:
        """Return how a number was computed, in words: "exact", or "upper bound, joint"."""
        return self.value if self is Bound.EXACT else f"{self.value}, {method}"
