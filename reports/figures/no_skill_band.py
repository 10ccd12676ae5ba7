"""What attacks without any skill reach by luck: the grey band of every ROC."""

from collections.abc import Callable
from functools import cache

import numpy as np

from attacks.statistics.no_skill import no_skill_p_value


@cache
def no_skill_band(n_members: int, n_non_members: int) -> tuple[tuple[float, float, float], ...]:
    """Return (FPR, low, high): where the TPR of a score without skill lies with probability 0.95, point by point.

    At ``k`` false positives of ``N`` the count of true positives is beta-binomial(M, k+1, N-k).

    >>> [(x, round(low, 2), round(high, 2)) for x, low, high in no_skill_band(100, 100)][:2]
    [(0.01, 0.0, 0.07), (0.02, 0.0, 0.09)]
    """
    allowed = np.unique(np.geomspace(1, n_non_members, 32).astype(int)).tolist()
    return tuple((k / n_non_members, *_limits(k, n_members, n_non_members)) for k in allowed)


def _limits(allowed: int, m: int, n: int) -> tuple[float, float]:
    def reaches(count: int) -> float:
        """Return the probability of so many true positives or more."""
        return 0.0 if count > m else no_skill_p_value(count, m, allowed=allowed, n_non_members=n)

    if allowed >= n:
        return 1.0, 1.0
    low = _last(lambda count: reaches(count) >= 0.975, m)
    high = _last(lambda count: reaches(count) >= 0.025, m)
    return low / m, high / m


def _last(holds: Callable[[int], bool], most: int) -> int:
    """Return the largest count that a condition holds for; it holds for 0, and up to that one only."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low
