"""One number over several seeds: its mean and its spread from seed to seed."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from accountant import check


@dataclass(frozen=True, kw_only=True)
class OverSeeds:
    """Mean of a number over seeds.

    Attributes:
        mean: over the seeds that gave a value; ``None`` if none did.
        std: sample standard deviation (divisor n - 1); ``None`` for fewer than two values.
        se: standard error of the mean, ``std / sqrt(n)``.
        low: lower end of the t interval of the mean.
        high: upper end.
        level: confidence level of the interval.
        n: seeds that gave a value.
        n_missing: seeds that gave none.
        note: the reason for whatever is ``None``.
    """

    mean: float | None
    std: float | None
    se: float | None
    low: float | None
    high: float | None
    level: float
    n: int
    n_missing: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


def over_seeds(values: Sequence[float | None], *, level: float = 0.95) -> OverSeeds:
    """Return mean, sample standard deviation and t interval of one number over seeds.

    Spread over rounds or classes is not seed noise: give one value per seed.

    | values | result |
    |---|---|
    | two or more | everything |
    | one | mean; the spread has no value, and the reason |
    | none, or all ``None`` | no value, and the reason |
    | some ``None`` | they are left out and counted in ``n_missing`` |

    Args:
        values: one finite number per seed, or ``None`` where that seed could not give one.
        level: confidence level of the interval, in (0, 1).

    Raises:
        ValueError: a value is NaN or infinite.

    >>> found = over_seeds([0.61, 0.58, 0.66, 0.63, 0.60])
    >>> [round(number, 4) for number in (found.mean, found.std, found.low, found.high)]
    [0.616, 0.0305, 0.5781, 0.6539]
    """
    check.open_unit(level=level)
    given = [float(value) for value in values if value is not None]
    for index, value in enumerate(values):
        if value is not None and not math.isfinite(value):
            raise ValueError(
                f"values[{index}] is {value}; give a finite number, or None if that seed has none."
            )
    n, missing = len(given), len(values) - len(given)
    if n < 2:
        reason = "one seed does not show a spread; run at least two" if n else "no seed gave a value"
        return OverSeeds(
            mean=given[0] if n else None, std=None, se=None, low=None, high=None,
            level=level, n=n, n_missing=missing, note=reason,
        )  # fmt: skip
    mean, std = float(np.mean(given)), float(np.std(given, ddof=1))
    se = std / math.sqrt(n)
    reach = float(special.stdtrit(n - 1, (1 + level) / 2)) * se
    return OverSeeds(
        mean=mean, std=std, se=se, low=mean - reach, high=mean + reach, level=level, n=n, n_missing=missing
    )
