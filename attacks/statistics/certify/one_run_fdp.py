"""Mu from one training run with many canaries, for a mechanism whose trade-off curve is Gaussian."""

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

from accountant import check
from attacks.statistics.certify.certificate import Certificate, epsilon_or_zero
from attacks.statistics.certify.gdp import GAUSSIAN_CURVE
from attacks.statistics.certify.one_run import COINS, check_guesses

METHOD = "one run, Gaussian DP"
_GRID = 64
_WIDTH = 1e-9


def epsilon_one_run_fdp(
    *, canaries: int, guesses: int, correct: int, delta: float, level: float = 0.95
) -> Certificate:
    """Return the mu, and its epsilon, that the number of correct guesses in one run rules out.

    Args:
        canaries: m, canaries whose inclusion was drawn, at least 1.
        guesses: c', canaries guessed in or out, the most confident ones; at least 1, at most m.
        correct: c, right guesses, at most c'.
        delta: in (0, 1).
        level: probability that the limit holds, in (0, 1).

    Guarantees:
        ``mu_low`` is below the true mu with probability at least ``level``, for any mu-GDP mechanism, also
        when the noise of canaries is dependent.

    Source: Mahloujifar, Melis and Chaudhuri (2024), Algorithm 3, https://arxiv.org/abs/2410.22235

    >>> cert = epsilon_one_run_fdp(canaries=100, guesses=100, correct=75, delta=1e-5)
    >>> round(cert.mu_low, 6), round(cert.epsilon_low, 5)
    (0.404312, 1.57358)
    """
    check.open_unit(level=level)
    check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    mu_low = _largest_refuted(canaries, guesses, correct, level)
    return Certificate(
        method=METHOD,
        epsilon_low=epsilon_or_zero(mu_low, delta=delta),
        mu_low=mu_low,
        delta=delta,
        level=level,
        assumptions=(COINS, GAUSSIAN_CURVE),
        threshold_source="",
        evidence=f"{correct} of {guesses} guesses right, {canaries} canaries",
    )


def _largest_refuted(canaries: int, guesses: int, correct: int, level: float) -> float:
    """Return the largest refuted mu, 0 if none; every pass of the recursion tries a whole grid of mus."""
    low, high = 0.0, 1.0
    while _refuted(np.array([high]), canaries, guesses, correct, level)[0]:
        low, high = high, 2 * high
    while high - low > _WIDTH:
        grid = np.linspace(low, high, _GRID)
        last = np.count_nonzero(_refuted(grid, canaries, guesses, correct, level)) - 1
        if last < 0:
            return 0.0
        low, high = float(grid[last]), float(grid[min(last + 1, _GRID - 1)])
    return low


def _refuted(
    mu_K: Float[np.ndarray, " K"], canaries: int, guesses: int, correct: int, level: float
) -> Bool[np.ndarray, " K"]:
    """Return which mus could not have produced so many right guesses with probability above 1 - level."""
    h_K = np.full(len(mu_K), (1 - level) * (guesses - correct) / canaries)
    r_K = np.full(len(mu_K), (1 - level) * correct / canaries)
    for i in range(correct - 1, -1, -1):
        next_h_K = np.maximum(h_K, special.ndtr(special.ndtri(r_K) - mu_K))
        r_K = np.minimum(r_K + i / (guesses - i) * (next_h_K - h_K), 1.0)
        h_K = next_h_K
    return r_K + h_K > guesses / canaries
