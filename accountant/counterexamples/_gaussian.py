"""Releases with independent Gaussian noise, and counterexamples that differ in where they are centred."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from accountant import gaussian
from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_from_losses, factor_from_losses

_CHUNK = 4_000_000  # normal draws that are held at once

FACTOR = "mu factor"


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """The distribution of everything that one run releases, in one row.

    Attributes:
        mean: shape [d].
        std: noise standard deviation of each coordinate, shape [d], > 0.
    """

    mean: Float[np.ndarray, " d"]
    std: Float[np.ndarray, " d"]

    def draw(self, samples: int, rng: np.random.Generator) -> Float[np.ndarray, "samples d"]:
        """Return independent runs."""
        return self.mean + self.std * rng.standard_normal((samples, len(self.mean)))

    def log_density(self, outputs_nd: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """Return the log density of outputs, up to a constant that all releases of that size share."""
        return -0.5 * (((outputs_nd - self.mean) / self.std) ** 2).sum(1) - np.log(self.std).sum()


def shift_over_noise(p: Release, q: Release) -> float:
    """Return mu of two releases with the same noise, the Mahalanobis distance of their means."""
    if not np.array_equal(p.std, q.std):
        raise ValueError("the two releases have different noise, so no mu describes them; compare delta.")
    return float(np.linalg.norm((p.mean - q.mean) / p.std))


def losses(
    p: Release, q: Release, *, samples: int, rng: np.random.Generator
) -> Float[np.ndarray, " samples"]:
    """Return privacy losses ``ln p/q`` of outputs drawn from ``p``."""
    rows = max(1, _CHUNK // len(p.mean))
    found_n = np.empty(samples)
    for start in range(0, samples, rows):
        outputs_nd = p.draw(min(rows, samples - start), rng)
        found_n[start : start + rows] = p.log_density(outputs_nd) - q.log_density(outputs_nd)
    return found_n


def class_means(
    records: Records, *, sigma: float, noise_counts: Mapping[str, int] | None = None, clip_norm: float = 1.0
) -> Release:
    """Return IGPP's release of class means: clip each record, average, noise of ``sigma * 2R / n_c``.

    Args:
        records: by class; none may be empty.
        sigma: noise multiplier, > 0.
        noise_counts: the n_c that the noise follows; those of ``records`` if not given.
        clip_norm: R, > 0.

    Source: VPDR, Eqs. 3 and 5
    """
    counts = noise_counts or {label: len(records_nd) for label, records_nd in records.items()}
    means = [clipped(records_nd, clip_norm).mean(0) for records_nd in records.values()]
    stds = [
        np.full(len(mean), sigma * 2 * clip_norm / counts[label])
        for label, mean in zip(records, means, strict=True)
    ]
    return Release(mean=np.concatenate(means), std=np.concatenate(stds))


def clipped(records_nd: Float[np.ndarray, "n d"], clip_norm: float) -> Float[np.ndarray, "n d"]:
    """Return records scaled down to an l2 norm of at most ``clip_norm``."""
    norms_n1 = np.linalg.norm(records_nd, axis=1, keepdims=True)
    return records_nd * (clip_norm / np.maximum(norms_n1, clip_norm))


@dataclass(frozen=True, kw_only=True)
class GaussianCounterexample(Counterexample):
    """Outputs are Gaussian with the same noise on D and D': everything follows from how far the means move."""

    @property
    @abstractmethod
    def factor(self) -> float:
        """Return the true mu / the claimed mu."""

    @abstractmethod
    def releases(self) -> tuple[Release, Release]:
        """Return what is released of D and of D'."""

    def facts(self) -> tuple[Fact, ...]:
        """Return the factor, and what it makes of epsilon and of delta."""
        mu = self.factor * self.mu
        return (
            Fact(name=FACTOR, value=self.factor, claimed=1.0),
            Fact(
                name=f"epsilon at delta={self.delta:g}",
                value=gaussian.epsilon_from_mu(mu=mu, delta=self.delta),
                claimed=self.epsilon,
            ),
            Fact(
                name=self.delta_name,
                value=gaussian.delta_from_mu(epsilon=self.epsilon, mu=mu),
                claimed=self.delta,
            ),
        )

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        p, q = self.releases()
        from_p, from_q = losses(p, q, samples=samples, rng=rng), -losses(q, p, samples=samples, rng=rng)
        return (
            factor_from_losses(FACTOR, from_p, from_q, claimed_mu=self.mu),
            delta_from_losses(self.delta_name, from_p, epsilon=self.epsilon, rng=rng),
        )
