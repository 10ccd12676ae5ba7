"""A race of two scores with Laplace noise, the smallest private selection: k = 1 of d = 2."""

import math

import numpy as np
from jaxtyping import Bool, Float


def win(gap: float) -> float:
    """Return the probability that the first of two noisy scores is the larger one.

    Args:
        gap: first score - second score, in units of the Laplace scale; finite.
    """
    lose = 0.5 * math.exp(-abs(gap)) * (1 + abs(gap) / 2)
    return 1 - lose if gap > 0 else lose


def race(
    scores_2: Float[np.ndarray, " 2"], *, scale: float, shape: tuple[int, ...], rng: np.random.Generator
) -> Bool[np.ndarray, "..."]:
    """Return for each of many selections whether the first coordinate was selected."""
    first, second = (score + rng.laplace(scale=scale, size=shape) for score in scores_2)
    return first > second
