"""One-shot top-k: noise on every score once, and the set of the k largest is published.

Scores are clipped to ``[0, H]``, so that a record can move each of them over the whole range, whatever the
neighbouring relation: a selection costs the same under all of them.
"""

from dataclasses import dataclass

from accountant.events._base import Leaf, keep_counts, keep_positive


@dataclass(frozen=True, kw_only=True)
class TopK(Leaf):
    """A selection; not used itself: the subclass says what the noise is.

    Attributes:
        k: selected coordinates, in 1..dim-1.
        dim: all coordinates, at least 2.
        score_bound: H, how far one record can move a score; unit of a score, > 0.
        scale: of the noise on a score, in the same unit, > 0; see the subclass.
        monotone: whether one record can move scores in one direction only.
    """

    k: int
    dim: int
    score_bound: float
    scale: float
    monotone: bool = False

    def __post_init__(self) -> None:
        keep_counts(self, "k", "dim")
        if self.k >= self.dim:
            raise ValueError(
                f"k={self.k} of dim={self.dim}: select at least one coordinate and leave out one."
            )
        keep_positive(self, "score_bound", "scale")
        if not isinstance(self.monotone, bool):
            raise ValueError(f"monotone={self.monotone!r}; say True or False.")  # noqa: TRY004

    @property
    def reach(self) -> float:
        """Return how far two scores can move against each other, in units of the noise scale."""
        return (1 if self.monotone else 2) * self.score_bound / self.scale


@dataclass(frozen=True, kw_only=True)
class LaplaceTopK(TopK):
    """Laplace noise of scale ``lambda`` on each score: ``2 min(k, d - k) H / lambda``-DP, tight for sets.

    Given the noise outside the set, it is a product of k survival functions, each of which shifts by at most 2H
    and is 1/lambda-Lipschitz in its logarithm; given the noise inside, of d - k. All scores with noise are besides
    a vector of which every coordinate moves by at most H, and a selection from it is post-processing.

    Source: VPDR, Eq. 9; Qiao, Su and Zhang (2021), https://arxiv.org/abs/2105.08233
    """

    @property
    def epsilon(self) -> float:
        """Return its pure guarantee, in nats."""
        return min(self.k, self.dim - self.k) * self.reach


@dataclass(frozen=True, kw_only=True)
class ExponentialTopK(TopK):
    """Exponential noise of scale ``beta`` on each score: ``2 k H / beta``-DP, with less noise than Laplace's.

    The logarithm of its survival function is 1/beta-Lipschitz, as Laplace's; its distribution function is not, so
    there is no bound by d - k, and it has no bounded range.
    """

    @property
    def epsilon(self) -> float:
        """Return its pure guarantee, in nats."""
        return self.k * self.reach


@dataclass(frozen=True, kw_only=True)
class GumbelTopK(TopK):
    """Gumbel noise of scale ``beta`` on each score: the same as k rounds of the exponential mechanism.

    Publishing even the order of the k, each pick has a privacy loss of range ``2 H / beta``.

    Source: Durfee and Rogers (2019), Lemma 4.2, https://arxiv.org/abs/1905.04273
    """

    @property
    def eta(self) -> float:
        """Return the range of one pick's privacy loss, in nats."""
        return self.reach


@dataclass(frozen=True, kw_only=True)
class GaussianTopK(TopK):
    """Gaussian noise of standard deviation ``scale`` on each score.

    All scores with noise are one Gaussian mechanism of sensitivity ``H sqrt(d)``; the selection is post-processing.
    """

    @property
    def mu(self) -> float:
        """Return the Gaussian-DP parameter of all noisy scores together."""
        return self.score_bound * self.dim**0.5 / self.scale
