"""Are sets drawn at random, or can the next one be guessed from those before?"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy import special

_SMALLEST = 1e-12  # what is left of a probability that came out of a Fourier transform


def guesses_hit(chosen: Sequence[Bool[np.ndarray, " d"]]) -> tuple[int, float]:
    """Return how often a guess from the sets before is right, over all sets but the first, and how often by chance.

    The guess of the next set is those coordinates that were chosen most often before, as many as a set has.

    Args:
        chosen: sets of one size, in the order of drawing, at least two.
    """
    often_d, hits = np.zeros(len(chosen[0])), 0
    for i, set_d in enumerate(chosen):
        size = int(set_d.sum())
        if i:
            hits += int(set_d[np.argsort(-often_d, kind="stable")[:size]].sum())
        often_d += set_d
    size = int(chosen[0].sum())
    return hits, (len(chosen) - 1) * size**2 / len(chosen[0])


def uniform_p_value(chosen: Sequence[Bool[np.ndarray, " d"]]) -> float:
    """Return the two-sided p-value of "every set is uniformly random, whatever was drawn before".

    Whatever the guess, a uniform set of k among d hits it as a hypergeometric number of times, independently of all
    sets before. So the hits of all guesses together are a sum of such numbers, whose law is computed exactly (down to
    1e-12, as small as a p-value gets).

    Args:
        chosen: sets of one size, in the order of drawing, at least two.

    Raises:
        ValueError: fewer than two sets, or not all of one size.

    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.permutation(64) < 13 for _ in range(20)]
    >>> uniform_p_value(sets) > 0.01, uniform_p_value([sets[0]] * 20) < 1e-11
    (True, True)
    """
    if len(chosen) < 2 or len({(len(c), int(c.sum())) for c in chosen}) > 1:
        raise ValueError("give at least two sets, all of one size among as many coordinates.")
    dim, size = len(chosen[0]), int(chosen[0].sum())
    hits, _ = guesses_hit(chosen)
    law = _sum_of_hits(dim, size, len(chosen) - 1)
    below, above = float(law[: hits + 1].sum()), float(law[hits:].sum())
    return float(min(1.0, max(2 * min(below, above), _SMALLEST)))


def _sum_of_hits(dim: int, size: int, times: int) -> Float[np.ndarray, " hits"]:
    """Return the law of a sum of hypergeometric numbers: ``size`` draws, ``size`` winners, ``dim`` tickets."""
    k = np.arange(size + 1)
    possible = size - k <= dim - size
    others = np.where(possible, size - k, 0)
    log = _log_choose(size, k) + _log_choose(dim - size, others) - _log_choose(dim, np.array([size]))
    one = np.where(possible, np.exp(log), 0.0)
    length = times * size + 1
    law = np.fft.irfft(np.fft.rfft(one, 2 * length) ** times, 2 * length)[:length]
    return np.maximum(law, 0.0)


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
