"""Clusters of a class along axes on which population and noise are independent: one decomposition serves all of them.

With ``S = L L^T`` the covariance of the population and ``D`` that of the noise on a sum of records, the axes are the
rows of ``U^T L^{-1}``, where ``L^{-1} D L^{-T} = U diag(noise) U^T``: on them the mean of n records has variance
``1/n + noise/n^2``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy import linalg

from attacks._averaged import Averaged
from attacks._kept import Kept
from attacks.membership._groups import Question
from attacks.membership._population import Population

_MOST_KEPT = 128  # four clients of 20 rounds need 80; at d = 512 all take 270 MB


@dataclass(frozen=True, eq=False)
class Along:
    """The clusters of one class, and candidates, along such axes, each minus the mean of the class.

    Attributes:
        centres: shape [K, d].
        noise: variance of the noise on each centre, that of one record of the population being 1; shape [K, d].
        counts: records behind each centre, shape [K].
        candidates: shape [N, d].
        reference: records behind the mean of the class.
    """

    centres: Float64[np.ndarray, "K d"]
    noise: Float64[np.ndarray, "K d"]
    counts: Float64[np.ndarray, " K"]
    candidates: Float64[np.ndarray, "N d"]
    reference: int

    def squares(
        self, precision_Kd: Float64[np.ndarray, "K d"]
    ) -> tuple[Float64[np.ndarray, " K"], Float64[np.ndarray, "K N"], Float64[np.ndarray, "K N"]]:
        """Return ``x^T P x``, ``x^T P s`` and ``s^T P s``: x a centre, s a candidate over its count, P a precision."""
        weighted_Kd = self.centres * precision_Kd
        inner_KN = weighted_Kd @ self.candidates.T / self.counts[:, None]
        own_KN = precision_Kd @ (self.candidates**2).T / self.counts[:, None] ** 2
        return (weighted_Kd * self.centres).sum(1), inner_KN, own_KN


def along(questions: tuple[Question, ...]) -> Along:
    """Return the clusters of one set along the axes of their population and noise."""
    first = questions[0]
    population, mean = first.population, first.population.means[first.label]
    releases = [asked.release for asked in questions]
    onto_dd, noise_Kd = _of_isotropic(population, releases) or _of_groups(population, releases)
    return Along(
        centres=(np.array([one.vector for one in releases]) - mean) @ onto_dd.T,
        noise=noise_Kd,
        counts=np.array([one.count for one in releases]),
        candidates=(first.candidates - mean) @ onto_dd.T,
        reference=population.sizes[first.label],
    )


def _of_isotropic(
    population: Population, releases: Sequence[Averaged]
) -> tuple[Float64[np.ndarray, "d d"], Float64[np.ndarray, "K d"]] | None:
    """Return the population's own axes, scaled to unit variance, and the noise along each; ``None`` of other noise."""
    if not all(release.isotropic for release in releases):
        return None
    variances_d, axes_dd = population.principal
    noise_K = np.array([release.variance[0] for release in releases])
    return (axes_dd / np.sqrt(variances_d)).T, noise_K[:, None] / variances_d


def _of_groups(
    population: Population, releases: Sequence[Averaged]
) -> tuple[Float64[np.ndarray, "d d"], Float64[np.ndarray, "K d"]]:
    """Return the axes, one a row, and the noise along each: a multiple of that on a sum of records."""
    noise_d = releases[0].noise_of_sum_d
    onto_dd, noise_of_axis_d = _axes(population, noise_d)
    share_K = np.array([release.variance.sum() / noise_d.sum() for release in releases])
    return onto_dd, share_K[:, None] * noise_of_axis_d


_kept = Kept[tuple[np.ndarray, np.ndarray]](_MOST_KEPT)


def _axes(
    population: Population, noise_d: Float64[np.ndarray, " d"]
) -> tuple[Float64[np.ndarray, "d d"], Float64[np.ndarray, " d"]]:
    """Return the axes, one a row, and the noise along each; the last few are kept, for the other classes."""

    def compute() -> tuple[np.ndarray, np.ndarray]:
        factor = linalg.cholesky(population.covariance, lower=True)
        half_dd = linalg.solve_triangular(factor, np.diag(np.sqrt(noise_d)), lower=True)
        noise_of_axis_d, turn_dd = linalg.eigh(half_dd @ half_dd.T)
        onto_dd = linalg.solve_triangular(factor.T, turn_dd, lower=False).T
        return onto_dd, np.maximum(noise_of_axis_d, 0.0)

    return _kept.of(compute, population.covariance, noise_d)
