"""IGPP: clip every record to a ball, average each class, add isotropic Gaussian noise.

Replacing one record of a class by another of the same class moves that class's mean by at most ``2R/n_c``
and no other mean, so noise of standard deviation ``sigma * 2R/n_c`` on every class is one Gaussian
mechanism with noise multiplier ``sigma``, whatever the class sizes (which count as public).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from accountant.contract import DependsOn
from accountant.events import Gaussian
from accountant.gaussian import sigma_from_epsilon
from privkit.clip import clip_to_ball
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses._means import ClassMeans, class_means, contract_of_means, refuse_single_records
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.release import Prototypes
from privkit.truth import Hidden


class Igpp(AbstractReleaseDefense):
    """Isotropic Gaussian perturbation of class prototypes, the baseline of the VPDR paper."""

    citation: ClassVar[str] = "vpdr"

    epsilon: float = Field(gt=0, description="privacy loss promised for the whole run, in nats")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    clip_norm: float = Field(default=1.0, gt=0, description="R, largest l2 norm of one record's embedding")
    smallest_class: int = Field(
        default=2,
        ge=1,
        description="fewest records that a class may be released with; 1 allows single records",
    )
    hyperparameters: DependsOn = Field(
        default=DependsOn.PUBLIC, description="what R, epsilon and the rounds were chosen from"
    )

    @property
    def promise(self) -> Promise:
        return Promise(self.epsilon, self.delta)

    def mechanism(self, *, rounds: int) -> "GaussianMeans":
        return GaussianMeans(
            noise_multiplier=sigma_from_epsilon(epsilon=self.epsilon, delta=self.delta, rounds=rounds),
            clip_norm=self.clip_norm,
            smallest_class=self.smallest_class,
            hyperparameters=self.hyperparameters,
        )


@dataclass(frozen=True, kw_only=True)
class GaussianMeans(Mechanism):
    """Clipped class means with Gaussian noise.

    Attributes:
        noise_multiplier: noise standard deviation / (2R/n_c), no unit.
        clip_norm: R.
        hyperparameters: what both were chosen from.
        smallest_class: fewest records that a class may be released with.
    """

    noise_multiplier: float
    clip_norm: float
    hyperparameters: DependsOn
    smallest_class: int = 2

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        contract = contract_of_means(
            embeddings, known, clip_norm=self.clip_norm, hyperparameters=self.hyperparameters
        )
        return Gaussian(noise_multiplier=self.noise_multiplier, contract=contract)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        means = class_means(
            embeddings.with_vectors(clip_to_ball(embeddings.vectors, norm=self.clip_norm)), known
        )
        refuse_single_records(means, least=self.smallest_class)
        noisy = means.vectors + self.noise_std(means)[:, None] * noise.normal(means.vectors.shape)
        payload = Prototypes(vectors=noisy.astype(np.float32), labels=means.labels, counts=means.counts)
        one_group = np.zeros(means.vectors.shape[1], dtype=np.int64)
        return Privatized(payload, self.event(embeddings, known), Hidden(means.vectors, one_group))

    def noise_std(self, means: ClassMeans) -> Float64[np.ndarray, " P"]:
        """Return the standard deviation of the noise on each row: ``sigma 2R/n_c``."""
        return self.noise_multiplier * 2.0 * self.clip_norm / means.counts
