"""Several tests at once: the chance of one false alarm among all of them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from accountant import check


@dataclass(frozen=True, kw_only=True)
class Holm:
    """The outcome of several tests whose family-wise error is controlled.

    Attributes:
        significance: largest probability of any false rejection.
        adjusted: per test, its p-value corrected for the others; ``None`` for a test that was not made.
        rejected: tests whose adjusted p-value is at most ``significance``, smallest first.
        not_tested: tests without a p-value; they are not counted.
    """

    significance: float
    adjusted: dict[str, float | None]
    rejected: tuple[str, ...]
    not_tested: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "significance": self.significance,
            "adjusted": dict(self.adjusted),
            "rejected": list(self.rejected),
            "not_tested": list(self.not_tested),
        }


def holm(p_values: Mapping[str, float | None], *, significance: float = 0.001) -> Holm:
    """Return which of several tests are rejected so that any false rejection has at most a given probability.

    Valid whatever the dependence between the tests.

    Args:
        p_values: one p-value per test, in [0, 1]; ``None`` for a test that could not be made.
        significance: family-wise error, in (0, 1).

    Raises:
        ValueError: a p-value is NaN or outside [0, 1].

    Source: Holm (1979), Scand. J. Statist. 6.

    >>> found = holm({"auc": 0.0004, "tpr": 0.02, "canary": 0.0001}, significance=0.001)
    >>> found.rejected, found.adjusted["tpr"]
    (('canary', 'auc'), 0.02)
    """
    check.open_unit(significance=significance)
    tested = {name: float(p) for name, p in p_values.items() if p is not None}
    for name, p in tested.items():
        if math.isnan(p) or not 0 <= p <= 1:
            raise ValueError(
                f"p-value of {name!r} is {p}; give a probability in [0, 1], or None if not tested."
            )
    order = sorted(tested, key=lambda name: (tested[name], name))
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    largest = 0.0
    for rank, name in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * tested[name]))
        adjusted[name] = largest
    return Holm(
        significance=significance,
        adjusted=adjusted,
        rejected=tuple(name for name in order if (adjusted[name] or 0.0) <= significance),
        not_tested=tuple(name for name in p_values if name not in tested),
    )
