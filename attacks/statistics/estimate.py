"""A number that says how sure it is, or why it is not there."""

import math
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One estimated number with its interval, its no-skill value and the evidence behind it.

    Attributes:
        value: the estimate; ``None`` where it cannot be estimated, and then :attr:`note` is the reason.
        low: lower end of the interval; ``None`` where there is no interval.
        high: upper end of the interval; ``None`` where there is no interval.
        level: confidence level of the interval, in (0, 1); ``None`` where there is no interval.
        kind: how the interval was made, in words.
        n_members: members behind the number.
        n_non_members: non-members behind the number.
        null: what a score without any skill gives on average.
        p_value: one-sided, probability of a value at least this large without any skill.
        note: what a reader must know, or the reason for a missing value; may be empty.

    >>> Estimate.missing("no non-members", n_members=2, n_non_members=0).value is None
    True
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    kind: str = ""
    n_members: int
    n_non_members: int
    null: float | None = None
    p_value: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "level", "null", "p_value"):
            number = getattr(self, name)
            if number is not None and not math.isfinite(number):
                raise ValueError(f"{name}={number} must be finite; use None and say why in note.")
        if self.value is None and not self.note:
            raise ValueError("value is missing without a reason; say why in note.")
        if self.value is None and (self.low, self.high, self.p_value) != (None, None, None):
            raise ValueError(f"value is missing ({self.note}) but an interval or a p-value is given.")

    @classmethod
    def missing(
        cls, reason: str, *, n_members: int, n_non_members: int, null: float | None = None
    ) -> "Estimate":
        """Return the estimate of something that cannot be estimated, with its reason."""
        return cls(value=None, note=reason, n_members=n_members, n_non_members=n_non_members, null=null)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: no NaN, no infinity."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Estimate":
        """Read what :meth:`to_dict` wrote; an unknown or a missing field is refused."""
        known = {field.name for field in fields(cls)}
        if set(plain) != known:
            odd = sorted(set(plain) ^ known)[0]
            raise ValueError(
                f"estimate field {odd!r} is unknown or missing; fields are {', '.join(sorted(known))}."
            )
        return cls(**plain)


def empty_class(n_members: int, n_non_members: int) -> str:
    """Return why two classes cannot be compared, or an empty string if both have somebody."""
    if n_members and n_non_members:
        return ""
    if not n_members and not n_non_members:
        return "no members and no non-members"
    return "no members" if not n_members else "no non-members"
