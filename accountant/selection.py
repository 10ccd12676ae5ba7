r"""VPP's private selection of coordinates, and how much of it is more than chance.

One-shot Laplace top-k adds noise of scale ``lambda`` to ``d`` scores in ``[0, H]`` and publishes the set of the
``k`` largest. If one record can move every score over the whole range, that is ``2 min(k, d - k) H / lambda``-DP, and
for sets no better pure guarantee exists.

How good can such a selection be? With the noise held fixed, raising a score of the true top-k or lowering one
outside it never loses a member of it, so the best case has ``k`` scores at ``H`` and the rest at 0. Let ``x`` be a
noisy score at ``H`` and ``z`` one at 0, in units of ``lambda``, ``S_1``, ``S_0`` their survival functions, ``f_1``,
``f_0`` their densities and ``g_{a,b}(y)`` the chance that exactly ``k - 1`` of ``a`` scores like ``x`` and ``b`` like
``z`` exceed ``y``. Then

.. math:: P(x\ \text{in}) - P(z\ \text{in}) =
   \int (S_1 - S_0) \left[(k - 1) f_1 g_{k-2,\,d-k} + (d - k + 1) f_0 g_{k-1,\,d-k-1}\right] dy,

from integrating by parts ``P(in) = integral of f(y) P(fewer than k others exceed y)``. Nothing in it is negative, so
a gap as small as 1e-12 keeps its digits.

Source: VPDR, Eq. 9; Qiao, Su and Zhang (2021), https://arxiv.org/abs/2105.08233 (the mechanism)
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant import check

_FAR = 80.0  # a score this many lambda above the others is missed with probability e^-80
_TAIL = 40.0  # beyond this many lambda, Laplace noise has mass e^-40
_REACH = 6.5  # square roots of a count further apart than this have probability e^-42 (Chernoff)
_COIN_TOSS = 0.01  # a selection that gets less far from chance than this share of the way finds nothing
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """Expected overlap with the true top-k, at most, as a share of k.

    Attributes:
        expected_overlap: what the best possible scores reach, in [chance, 1].
        chance: what a random set reaches, ``k / d``.
        advantage: their difference, computed without cancellation; in [0, 1 - chance].
    """

    expected_overlap: float
    chance: float
    advantage: float

    @property
    def share(self) -> float:
        """Return how far from chance (0) to certainty (1) the selection gets."""
        return self.advantage / (1 - self.chance)

    @property
    def note(self) -> str:
        """Return both overlaps in words, and what they mean."""
        meaning = (
            "the private selection is a coin toss"
            if self.share < _COIN_TOSS
            else f"at best {100 * self.share:.0f} % of the way to the true set"
        )
        return f"at most {self.expected_overlap:.4f}, by chance {self.chance:.4f}: {meaning}"


def scale(*, k: int, score_bound: float, epsilon_total: float, rounds: int = 1) -> float:
    """Return the Laplace scale lambda of one round's noisy scores, ``2 k H T / epsilon_1`` (VPDR, Eq. 9).

    Args:
        k: selected coordinates, at least 1.
        score_bound: H, the range that scores are clipped to; unit of a score, > 0.
        epsilon_total: what all rounds of selection may cost together, in nats, > 0.
        rounds: at least 1.

    >>> round(scale(k=52, score_bound=1.0, epsilon_total=0.1, rounds=50), 6)
    52000.0
    """
    check.count(k=k, rounds=rounds)
    check.positive(score_bound=score_bound, epsilon_total=epsilon_total)
    return 2 * k * rounds * score_bound / epsilon_total


def pure_epsilon(*, k: int, dim: int, score_bound: float, scale: float) -> float:
    """Return what one round of selection costs, ``2 min(k, d - k) H / lambda``, in nats.

    The paper counts ``k``, which is the same up to half of the coordinates.

    Args:
        k: selected coordinates, in 1..dim-1.
        dim: all coordinates, at least 2.
        score_bound: H, the range that scores are clipped to; unit of a score, > 0.
        scale: lambda of the Laplace noise, in the same unit, > 0.

    >>> pure_epsilon(k=52, dim=512, score_bound=1.0, scale=52000.0)
    0.002
    """
    check.positive(score_bound=score_bound, scale=scale)
    _check_size(k, dim)
    return 2 * min(k, dim - k) * score_bound / scale


def fidelity(*, dim: int, k: int, scale_over_range: float) -> Fidelity:
    """Return the largest expected overlap with the true top-k that scores in [0, H] can have.

    Args:
        dim: all coordinates, at least 2.
        k: selected coordinates, in 1..dim-1.
        scale_over_range: lambda / H, > 0.

    Returns:
        Its advantage over chance to a relative error below 1e-9.

    >>> found = fidelity(dim=512, k=52, scale_over_range=52000.0)
    >>> round(found.expected_overlap, 6), found.chance, f"{found.advantage:.2e}"
    (0.101564, 0.1015625, '1.76e-06')
    """
    _check_size(k, dim)
    check.positive(scale_over_range=scale_over_range)
    chance = k / dim
    # Reversing all signs swaps the roles of the k and of the d - k without changing the gap.
    gap = min(_gap(min(k, dim - k), dim, min(1 / scale_over_range, _FAR)), 1.0)
    advantage = (1 - chance) * gap
    return Fidelity(expected_overlap=min(chance + advantage, 1.0), chance=chance, advantage=advantage)


def _check_size(k: int, dim: int) -> None:
    check.count(k=k, dim=dim)
    if not k < dim:
        raise ValueError(f"k={k} of dim={dim} leaves nothing unselected; give a k below dim.")


def _gap(k: int, dim: int, shift: float) -> float:
    """Return P(a score at ``shift`` is in) - P(a score at 0 is in), k against dim - k of them."""
    y_Q, weight_Q = _quadrature(k, dim, shift)
    low, high = y_Q, y_Q - shift
    density = (dim - k + 1) * np.exp(-np.abs(low)) / 2 * _exactly(k - 1, k - 1, dim - k - 1, low, high)
    if k > 1:
        density += (k - 1) * np.exp(-np.abs(high)) / 2 * _exactly(k - 1, k - 2, dim - k, low, high)
    return float(np.sum(weight_Q * _survival_gap(y_Q, shift) * density))


def _exactly(
    wanted: int, of_high: int, of_low: int, low_Q: Float[np.ndarray, " Q"], high_Q: Float[np.ndarray, " Q"]
) -> Float[np.ndarray, " Q"]:
    """Return P(``wanted`` of the high and low scores exceed a point) at each point."""
    at_least = max(wanted - of_low, 0)
    n_N = np.arange(at_least, min(wanted, of_high) + 1)
    log_mass_QN = _log_binomial(n_N, of_high, high_Q) + _log_binomial(wanted - n_N, of_low, low_Q)
    return np.exp(log_mass_QN).sum(axis=1)


def _log_binomial(hits_N: np.ndarray, times: int, y_Q: Float[np.ndarray, " Q"]) -> Float[np.ndarray, "Q N"]:
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, times + 1)))])
    ways_N = log_factorial[times] - log_factorial[hits_N] - log_factorial[times - hits_N]
    return ways_N + np.outer(_log_survival(y_Q), hits_N) + np.outer(_log_survival(-y_Q), times - hits_N)


def _log_survival(y: Float[np.ndarray, " Q"]) -> Float[np.ndarray, " Q"]:
    above = np.exp(-np.abs(y)) / 2
    return np.where(y >= 0, -y - math.log(2), np.log1p(-above))


def _survival_gap(y: Float[np.ndarray, " Q"], shift: float) -> Float[np.ndarray, " Q"]:
    """Return S(y - shift) - S(y) of the Laplace distribution, to full relative accuracy."""
    inside = np.clip(y, 0.0, shift)
    between = -(np.expm1(inside - shift) + np.expm1(-inside)) / 2
    beyond = -math.expm1(-shift) / 2 * np.exp(np.minimum(y, 0.0) - np.maximum(y - shift, 0.0))
    return np.where((y > 0) & (y < shift), between, beyond)


def _quadrature(k: int, dim: int, shift: float) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, " Q"]]:
    """Return points and weights of Gauss-Legendre panels, narrow where the k-th largest score can be.

    The square root of the number of scores above y has a standard deviation of at most one half.
    """
    y_Y = np.linspace(-_TAIL, shift + _TAIL, 20_001)
    above_Y = (k - 1) * np.exp(_log_survival(y_Y - shift)) + (dim - k) * np.exp(_log_survival(y_Y))
    root = math.sqrt(k) + np.linspace(-_REACH, _REACH, 18)
    levels = np.interp(-(root[root > 0][::-1] ** 2), -above_Y, y_Y)
    first = levels[0]
    last = levels[-1] if root[0] > 0 else y_Y[-1]
    edges = np.unique(np.concatenate([levels, np.arange(-_TAIL, y_Y[-1] + 1.5, 1.5), [0.0, shift]]))
    edges = np.unique(np.concatenate([[first], edges[(edges > first) & (edges < last)], [last]]))
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + _NODES)).ravel(), (half * _WEIGHTS).ravel()
