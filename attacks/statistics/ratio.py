"""How many times as large one error is as another, over the same records."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant import check

_BLOCK = 1 << 22  # resampled numbers held at once


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio of two means, at least 0.

    Attributes:
        value: the ratio.
        low: lower end of the two-sided interval.
        high: upper end.
        level: its confidence level, in (0, 1).
        records: pairs behind it.
    """

    value: float
    low: float
    high: float
    level: float
    records: int


def ratio_of_means(
    one_N: Float[np.ndarray, " N"],
    other_N: Float[np.ndarray, " N"],
    *,
    seed: int,
    replicates: int = 2000,
    level: float = 0.95,
) -> Ratio:
    """Return mean(one) / mean(other) with a percentile bootstrap interval; a record brings both of its errors along.

    Args:
        one_N: errors, at least 0, finite.
        other_N: those of the same records, not all 0.
        seed: of the resampling.
        replicates: resamples, at least 1.
        level: confidence level, in (0, 1).

    Raises:
        ValueError: no pairs, a negative or no finite error, or nothing to divide by.

    >>> ratio_of_means(np.array([1.0, 2.0]), np.array([2.0, 4.0]), seed=0).value
    0.5
    """
    check.count(replicates=replicates)
    one, other = np.asarray(one_N, np.float64), np.asarray(other_N, np.float64)
    both = np.stack([one, other])
    if not both.size or not np.isfinite(both).all() or (both < 0).any() or not other.any():
        raise ValueError("give errors on both sides, finite and at least 0, and some of the other above 0.")
    rng, found = np.random.default_rng(seed), []
    size = max(1, _BLOCK // len(one))
    for start in range(0, replicates, size):
        rows = rng.integers(0, len(one), (min(size, replicates - start), len(one)))
        sums = both[:, rows].sum(2)
        found.append(sums[0] / np.where(sums[1] > 0, sums[1], np.nan))
    low, high = np.nanquantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
    return Ratio(
        value=float(one.sum() / other.sum()), low=float(low), high=float(high), level=level, records=len(one)
    )
