"""E3: noise that follows a private count gives the count away, however large sigma is."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from accountant import check
from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_from_losses
from accountant.counterexamples._gaussian import Release, class_means, losses


def noise_scale_leak(*, n: int, n_prime: int, dim_times_rounds: int, epsilon: float) -> float:
    r"""Return delta(epsilon) of noise alone when its scale is ``sigma 2R / n`` or ``sigma 2R / n'``.

    It is the larger of the divergences of :math:`N(0, n^{-2} I_k)` and :math:`N(0, n'^{-2} I_k)` from one another;
    sigma and R cancel. The likelihood ratio depends on the squared norm only, so both are differences of two
    chi-square probabilities.

    Args:
        n: records behind a mean in D, at least 1.
        n_prime: records behind it in D', at least 1.
        dim_times_rounds: k, how many noisy coordinates are released, at least 1.
        epsilon: in nats, at least 0; at 0 it is the total variation distance.

    >>> round(noise_scale_leak(n=10, n_prime=9, dim_times_rounds=512, epsilon=1.0), 12)
    0.855939197258
    """
    return max(directed_leaks(n=n, n_prime=n_prime, dim_times_rounds=dim_times_rounds, epsilon=epsilon))


def directed_leaks(*, n: int, n_prime: int, dim_times_rounds: int, epsilon: float) -> tuple[float, float]:
    """Return delta(epsilon) of D against D', and of D' against D; arguments as in :func:`noise_scale_leak`."""
    check.count(n=n, n_prime=n_prime, dim_times_rounds=dim_times_rounds)
    check.non_negative(epsilon=epsilon)
    return (
        _divergence(n, n_prime, dim_times_rounds, epsilon),
        _divergence(n_prime, n, dim_times_rounds, epsilon),
    )


def _divergence(n: int, n_prime: int, k: int, epsilon: float) -> float:
    """Return the divergence of N(0, n^-2 I_k) from N(0, n'^-2 I_k) at epsilon."""
    if n == n_prime:
        return 0.0
    # ln p/q exceeds epsilon where the squared norm is below this bound (narrow p), or above it (wide p)
    bound = 2 * (k * math.log(n / n_prime) - epsilon) / (n * n - n_prime * n_prime)
    if bound <= 0:
        return 0.0
    probability = special.chdtr if n > n_prime else special.chdtrc
    p, q = (float(probability(k, m * m * bound)) for m in (n, n_prime))
    return max(p - math.exp(epsilon + math.log(q)), 0.0) if q > 0 else p


@dataclass(frozen=True, kw_only=True)
class NoiseScale(Counterexample):
    """A record is removed from a class whose records are all zero: only the noise changes.

    Attributes:
        n: records in D, at least 2; D' has one less.
        dim: coordinates of a mean, at least 1.
        rounds: releases, at least 1.
    """

    title = "the noise scale sigma 2R/n follows a private count"
    short = "noise scale follows n"
    claim = "the noise hides one record, whichever it is"
    truth = "its size reads n off; sigma and R cancel, and the leak grows with dim * rounds / n^2"
    breaks = ("A3",)
    way_out = "release noisy sums and counts at a fixed noise (defense sumcount), or make the counts public"
    draws = 20_000

    n: int = 10
    dim: int = 512
    rounds: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count(n=self.n, dim=self.dim, rounds=self.rounds)
        if self.n == 1:
            raise ValueError("n=1 leaves no record in D'; use at least 2.")

    def data(self) -> tuple[Records, Records]:
        return {"a": np.zeros((self.n, self.dim))}, {"a": np.zeros((self.n - 1, self.dim))}

    def facts(self) -> tuple[Fact, ...]:
        leak = max(self._leaks(self.epsilon))
        return (
            Fact(name=self.delta_name, value=leak, claimed=self.delta),
            Fact(name="total variation", value=max(self._leaks(0.0))),
        )

    def _leaks(self, epsilon: float) -> tuple[float, float]:
        released = self.dim * self.rounds
        return directed_leaks(n=self.n, n_prime=self.n - 1, dim_times_rounds=released, epsilon=epsilon)

    def releases(self) -> tuple[Release, Release]:
        """Return what all rounds release of D and of D'."""
        once = (class_means(records, sigma=self.sigma) for records in self.data())
        p, q = (Release(mean=np.tile(r.mean, self.rounds), std=np.tile(r.std, self.rounds)) for r in once)
        return p, q

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        forward, backward = self._leaks(self.epsilon)
        (p, q), drawn_from = (self.releases(), "D") if forward > backward else (self.releases()[::-1], "D'")
        losses_n = losses(p, q, samples=samples, rng=rng)
        return (
            delta_from_losses(
                self.delta_name, losses_n, epsilon=self.epsilon, rng=rng, drawn_from=drawn_from
            ),
        )
