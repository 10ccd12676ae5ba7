r"""How far one-shot Laplace top-k really tells two score vectors apart.

The best of all sets ``S`` of ``k`` scores is told by scores at ``H`` on ``S`` and 0 elsewhere from the same with both
exchanged. With ``h = H / lambda`` and the survival function ``S_h`` and density ``f_h`` of a Laplace variable at ``h``,

.. math:: P(S) = \int k f_h(y) S_h(y)^{k-1} F_0(y)^{d-k} dy,

over the smallest noisy score inside. Nodes are centred where the integrand is, or its tails would decide the digits.
"""

import math

import numpy as np
from jaxtyping import Float

from accountant import check

_SPAN = 60.0  # in ln below the largest: what lies outside is beyond the last digit
_GRID = 400_001
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def attained_log_ratio(*, dim: int, k: int, shift: float) -> float:
    """Return ``ln P(S) - ln P'(S)`` of the two vectors.

    Args:
        dim: all coordinates, at least 2.
        k: selected ones, from 1 to dim - 1.
        shift: H / lambda, > 0.

    Returns:
        In nats, to about 1e-12 absolute.

    >>> bound = 2 * 52 / 52000
    >>> round(attained_log_ratio(dim=512, k=52, shift=1 / 52000) / bound, 6)
    1.0
    """
    check.positive(shift=shift)
    check.count(k=k, others=dim - k)
    return _log_chance(k, dim, shift, 0.0) - _log_chance(k, dim, 0.0, shift)


def _log_chance(k: int, dim: int, inside: float, outside: float) -> float:
    """Return ln of the probability that the k scores at ``inside`` all exceed the others, at ``outside``."""

    def log_integrand(y: Float[np.ndarray, " Q"]) -> Float[np.ndarray, " Q"]:
        log_density = -np.abs(y - inside) - math.log(2)
        above, below = _log_survival(y - inside), _log_survival(outside - y)
        return math.log(k) + log_density + (k - 1) * above + (dim - k) * below

    reach = _SPAN + inside + outside
    y_G = np.linspace(-reach, reach, _GRID)
    height_G = log_integrand(y_G)
    kept = y_G[height_G > height_G.max() - _SPAN]
    edges = np.unique(np.concatenate([np.linspace(kept[0], kept[-1], 200), np.array([inside, outside])]))
    half = np.diff(edges)[:, None] / 2
    y_Q = (edges[:-1, None] + half * (1 + _NODES)).ravel()
    terms = log_integrand(y_Q) + np.log((half * _WEIGHTS).ravel())
    return float(terms.max() + math.log(np.exp(terms - terms.max()).sum()))


def _log_survival(y: Float[np.ndarray, " Q"]) -> Float[np.ndarray, " Q"]:
    return np.where(y >= 0, -np.abs(y) - math.log(2), np.log1p(-np.exp(-np.abs(y)) / 2))
