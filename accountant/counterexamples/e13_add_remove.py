"""E13: under adding or removing a record, 2R/n is no sensitivity that noise could follow."""

import math
from dataclasses import dataclass

import numpy as np

from accountant import check
from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_from_losses, factor_from_losses
from accountant.counterexamples._gaussian import Release, class_means, losses
from accountant.normal import cdf

_SUM = "mu factor of sums, noise sigma 2R"


def sum_factor() -> float:
    """Return true mu / claimed mu of class sums with noise ``sigma 2R``: a record moves a sum by R only, 0.5."""
    return 0.5


def sum_and_count_factor() -> float:
    """Return true mu / claimed mu of (sum, R count) with noise ``sigma 2R``: a record moves both by R, sqrt(1/2)."""
    return math.sqrt(0.5)


def mean_sensitivity(*, n: int, n_prime: int, clip_norm: float = 1.0) -> float:
    """Return how far one record that is added or removed can move a mean: 2R over the larger count.

    Args:
        n: records of D, at least 1: no mean of none exists.
        n_prime: records of D', one more or one less, at least 1.
        clip_norm: R, > 0.

    >>> mean_sensitivity(n=10, n_prime=9)
    0.2
    """
    check.count(n=n, n_prime=n_prime)
    check.positive(clip_norm=clip_norm)
    if abs(n - n_prime) != 1:
        raise ValueError(f"n={n} and n_prime={n_prime} must differ by one record.")
    return 2 * clip_norm / max(n, n_prime)


def normals_delta(p: tuple[float, float], q: tuple[float, float], *, epsilon: float) -> float:
    """Return delta(epsilon) of one normal distribution against another with a different standard deviation.

    Args:
        p: mean and standard deviation of the first, the latter > 0.
        q: of the second; the two standard deviations differ.
        epsilon: in nats.
    """
    (mean_p, std_p), (mean_q, std_q) = p, q
    if std_p == std_q:
        raise ValueError(f"both standard deviations are {std_p}; delta then follows from mu.")
    # in units of p, ln p/q - epsilon = (a y^2 + b y + c) / 2
    shift, ratio = (mean_p - mean_q) / std_q, std_p / std_q
    a, b, c = ratio * ratio - 1, 2 * shift * ratio, shift * shift - 2 * (math.log(ratio) + epsilon)
    discriminant = b * b - 4 * a * c
    if discriminant <= 0:
        return 0.0 if a < 0 else -math.expm1(epsilon)
    root = math.sqrt(discriminant)
    low, high = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)))
    ends = [(low, high), (ratio * low + shift, ratio * high + shift)]
    inside, outside = zip(*((cdf(y) - cdf(x), cdf(x) + cdf(-y)) for x, y in ends), strict=True)
    under_p, under_q = inside if a < 0 else outside
    return max(under_p - math.exp(epsilon) * under_q, 0.0)


@dataclass(frozen=True, kw_only=True)
class AddRemove(Counterexample):
    """One record is removed; in one dimension, so that little is due to the size of the noise (E3).

    Attributes:
        n: records of D, at least 2; D' has one less.
    """

    title = "2R/n is used under adding or removing a record"
    short = "2R/n under add or remove"
    claim = "a class mean with noise sigma 2R/n is private when a record is added or removed"
    truth = "it moves by 2R over the larger n, but noise that follows n leaks, and none has no mean; sums move by R"
    breaks = ("A2", "A3")
    way_out = "release noisy sums and counts (defense sumcount)"

    n: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count(n=self.n)
        if self.n == 1:
            raise ValueError("n=1 leaves no record in D', and none has no mean; use at least 2.")

    def data(self) -> tuple[Records, Records]:
        far_nd = np.full((self.n - 1, 1), -1.0)
        return {"a": np.concatenate([[[1.0]], far_nd])}, {"a": far_nd}

    def releases(self) -> tuple[Release, Release]:
        """Return noisy class means of D and of D', each with noise that follows its own count."""
        p, q = (class_means(records, sigma=self.sigma) for records in self.data())
        return p, q

    def sums(self) -> tuple[Release, Release]:
        """Return noisy class sums of D and of D', with noise sigma 2R."""
        std = np.array([2 * self.sigma])
        p, q = (Release(mean=records["a"].sum(0), std=std) for records in self.data())
        return p, q

    def _deltas(self) -> tuple[float, float]:
        p, q = ((float(r.mean[0]), float(r.std[0])) for r in self.releases())
        return normals_delta(p, q, epsilon=self.epsilon), normals_delta(q, p, epsilon=self.epsilon)

    def facts(self) -> tuple[Fact, ...]:
        fixed = mean_sensitivity(n=self.n, n_prime=self.n - 1) / (2 / self.n)
        return (
            Fact(name=self.delta_name, value=max(self._deltas()), claimed=self.delta),
            Fact(name=_SUM, value=sum_factor(), claimed=1.0),
            Fact(
                name="mu factor of (sum, R count), noise sigma 2R", value=sum_and_count_factor(), claimed=1.0
            ),
            Fact(name="mu factor of means, noise fixed at the larger n", value=fixed, claimed=1.0),
        )

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        forward, backward = self._deltas()
        (p, q), drawn_from = (self.releases(), "D") if forward > backward else (self.releases()[::-1], "D'")
        losses_n = losses(p, q, samples=samples, rng=rng)
        sum_p, sum_q = self.sums()
        from_p = losses(sum_p, sum_q, samples=samples, rng=rng)
        from_q = -losses(sum_q, sum_p, samples=samples, rng=rng)
        return (
            delta_from_losses(
                self.delta_name, losses_n, epsilon=self.epsilon, rng=rng, drawn_from=drawn_from
            ),
            factor_from_losses(_SUM, from_p, from_q, claimed_mu=self.mu),
        )
