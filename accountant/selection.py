r"""VPP's private selection of coordinates, and how much of it is more than chance.

One-shot Laplace top-k adds noise of scale ``lambda`` to ``d`` scores in ``[0, H]`` and publishes the set of the
``k`` largest. If one record can move every score over the whole range, that is ``2 min(k, d - k) H / lambda``-DP, and
for sets no better pure guarantee exists.

How good such a selection can be is :func:`accountant.overlap.gap`, for noise of any kind.

Source: VPDR, Eq. 9; Qiao, Su and Zhang (2021), https://arxiv.org/abs/2105.08233 (the mechanism)
"""

from dataclasses import dataclass

from accountant import check
from accountant.overlap import gap
from accountant.score_noise import AbstractScoreNoise, LaplaceNoise

_LAPLACE = LaplaceNoise()
_COIN_TOSS = 0.01  # a selection that gets less far from chance than this share of the way finds nothing


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


def fidelity(*, dim: int, k: int, scale_over_range: float, noise: AbstractScoreNoise = _LAPLACE) -> Fidelity:
    """Return the largest expected overlap with the true top-k that scores in [0, H] can have.

    Args:
        dim: all coordinates, at least 2.
        k: selected coordinates, in 1..dim-1.
        scale_over_range: scale of the noise / H, > 0.
        noise: on every score.

    Returns:
        Its advantage over chance to a relative error below 1e-9.

    >>> found = fidelity(dim=512, k=52, scale_over_range=52000.0)
    >>> round(found.expected_overlap, 6), found.chance, f"{found.advantage:.2e}"
    (0.101564, 0.1015625, '1.76e-06')
    """
    _check_size(k, dim)
    check.positive(scale_over_range=scale_over_range)
    chance = k / dim
    advantage = (1 - chance) * gap(noise, k=k, dim=dim, shift=1 / scale_over_range)
    return Fidelity(expected_overlap=min(chance + advantage, 1.0), chance=chance, advantage=advantage)


def _check_size(k: int, dim: int) -> None:
    check.count(k=k, dim=dim)
    if not k < dim:
        raise ValueError(f"k={k} of dim={dim} leaves nothing unselected; give a k below dim.")
