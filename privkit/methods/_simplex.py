r"""The smallest quadratic form on the simplex, by projected gradients: 20 lines in the place of a solver."""

import numpy as np
from jaxtyping import Float64

_MOST_STEPS = 20_000
_SMALLEST = 1e-12  # move, in l2 norm, that no longer counts


def onto_simplex(v_n: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Return the nearest vector whose entries are at least 0 and add up to 1.

    Source: Duchi et al. (2008), "Efficient projections onto the l1-ball for learning in high dimensions", Figure 1
    """
    high_n = np.sort(v_n)[::-1]
    excess_n = (np.cumsum(high_n) - 1) / np.arange(1, len(v_n) + 1)
    return np.maximum(v_n - excess_n[np.flatnonzero(high_n > excess_n)[-1]], 0.0)


def smallest_form(p_nn: Float64[np.ndarray, "n n"]) -> Float64[np.ndarray, " n"]:
    """Return the weights ``a`` on the simplex for which ``a^T P a`` is smallest; P is symmetric, positive semidefinite.

    Where several are, it is one of them: that which accelerated projected gradients find from equal weights.

    Source: Beck and Teboulle (2009), "A fast iterative shrinkage-thresholding algorithm", Section 4
    """
    largest = float(np.linalg.eigvalsh(p_nn)[-1])
    a_n = np.full(len(p_nn), 1 / len(p_nn))
    if largest <= 0:
        return a_n
    ahead_n, t = a_n, 1.0
    for _ in range(_MOST_STEPS):
        new_n = onto_simplex(ahead_n - p_nn @ ahead_n / largest)
        if np.linalg.norm(new_n - a_n) < _SMALLEST:
            return new_n
        faster = (1 + np.sqrt(1 + 4 * t * t)) / 2
        downhill = (ahead_n - new_n) @ (new_n - a_n) <= 0  # else the momentum is let go
        ahead_n, t = (new_n + (t - 1) / faster * (new_n - a_n), faster) if downhill else (new_n, 1.0)
        a_n = new_n
    return a_n
