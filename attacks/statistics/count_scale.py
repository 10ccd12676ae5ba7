"""Does the size of the noise tell how many records are behind a row?"""

import numpy as np
from jaxtyping import Float, Int
from scipy import special


def split_by_count(counts_P: Int[np.ndarray, " P"]) -> np.ndarray | None:
    """Return which rows have few records: the two sides of the widest gap (in ratio); ``None`` where all have as many.

    >>> split_by_count(np.array([4, 40, 5, 60])).tolist()
    [True, False, True, False]
    """
    known = np.unique(counts_P)
    if len(known) < 2:
        return None
    log = np.log(np.maximum(known, 0.5))
    return counts_P <= known[int(np.argmax(np.diff(log)))]


def count_scale_ratio(residuals_PD: Float[np.ndarray, "P D"], few_P: np.ndarray) -> float:
    """Return the standard deviation of rows of few records / that of the others."""
    few, many = residuals_PD[few_P], residuals_PD[~few_P]
    return float(np.sqrt(np.mean(few**2) / np.mean(many**2)))


def count_scale_p_value(residuals_PD: Float[np.ndarray, "P D"], few_P: np.ndarray) -> float:
    """Return the two-sided p-value of "rows of few and of many records have noise of one size", whatever it is.

    Exact for independent Gaussian noise: the share of the squares that rows of few records have is a beta variable.

    Args:
        residuals_PD: released - clean of each row.
        few_P: which rows have few records; some, not all.

    >>> rng, few = np.random.default_rng(0), np.arange(10) < 5
    >>> even = rng.standard_normal((10, 64))
    >>> count_scale_p_value(even, few) > 0.01, count_scale_p_value(even * (1 + few)[:, None], few) < 1e-9
    (True, True)
    """
    if few_P.all() or not few_P.any():
        raise ValueError("all rows are on one side; give some of few and some of many records.")
    few, many = (float(np.square(residuals_PD[side]).sum()) for side in (few_P, ~few_P))
    a, b = residuals_PD[few_P].size / 2, residuals_PD[~few_P].size / 2
    if few + many == 0:
        return 1.0
    below = special.betainc(a, b, few / (few + many))
    above = special.betainc(b, a, many / (few + many))
    return float(min(1.0, 2 * min(below, above)))
