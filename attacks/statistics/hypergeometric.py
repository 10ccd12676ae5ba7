"""Drawing without replacement: what ranks do when members and non-members are exchangeable."""

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy import special


def log_probability(
    successes_K: Int[np.ndarray, " K"], *, draws: int | Int[np.ndarray, " K"], good: int, bad: int
) -> Float[np.ndarray, " K"]:
    """Return ``log P(X = x)`` for X good ones among ``draws`` taken from ``good + bad`` without replacement.

    Impossible counts have probability zero, so minus infinity comes back.
    """
    x = np.asarray(successes_K)
    y = draws - x
    possible = (x >= 0) & (x <= good) & (y >= 0) & (y <= bad)
    x, y = np.where(possible, x, 0), np.where(possible, y, 0)
    value = _log_choose(good, x) + _log_choose(bad, y) - _log_choose(good + bad, x + y)
    return np.where(possible, value, -np.inf)


def probability_at_most(successes: int, *, draws: int, good: int, bad: int) -> float:
    """Return ``P(X <= successes)``; exact up to rounding, also far in the tail."""
    if successes < max(0, draws - bad):
        return 0.0
    if successes >= min(draws, good):
        return 1.0
    logs = log_probability(np.arange(successes + 1), draws=draws, good=good, bad=bad)
    return float(min(1.0, np.exp(special.logsumexp(logs))))


def _log_choose(n: int, k_K: Shaped[np.ndarray, " K"]) -> Float[np.ndarray, " K"]:
    return -np.log1p(float(n)) - special.betaln(n - k_K + 1.0, k_K + 1.0)
