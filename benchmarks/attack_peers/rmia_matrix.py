"""RMIA as a matrix: the ratio of every candidate to every record of the population, then the share above gamma."""

import numpy as np


def scores(
    target_N: np.ndarray,
    refs_NS: np.ndarray,
    target_M: np.ndarray,
    refs_MS: np.ndarray,
    *,
    a: float,
    gamma: float,
) -> np.ndarray:
    """Return each candidate's score from probabilities under the target and under reference models.

    Args:
        target_N, refs_NS: of candidates.
        target_M, refs_MS: of the population.
        a: of the offline correction.
        gamma: least ratio that counts.
    """
    candidates_N = target_N / (0.5 * ((1 + a) * refs_NS.mean(1) + (1 - a)))
    population_M = target_M / (0.5 * ((1 + a) * refs_MS.mean(1) + (1 - a)))
    ratios_NM = candidates_N[:, None] / population_M[None]
    return np.average(ratios_NM >= gamma, axis=1)
