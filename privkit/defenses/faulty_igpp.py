"""IGPP with a fault in it, for checking that an audit catches it. Never use it to protect anything."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from accountant.events import Gaussian
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses.igpp import GaussianMeans, Igpp
from privkit.embeddings import Embeddings
from privkit.noise import Noise


class FaultyIgpp(AbstractReleaseDefense):
    """IGPP that claims one amount of noise and draws another."""

    claims: Igpp = Field(description="the defense it claims to be")
    noise_factor: float = Field(
        default=0.5, gt=0, description="drawn noise / claimed noise, both standard deviations"
    )

    @property
    def promise(self) -> Promise:
        return self.claims.promise

    def mechanism(self, *, rounds: int) -> "UnderNoised":
        return UnderNoised(self.claims.mechanism(rounds=rounds), self.noise_factor)


@dataclass(frozen=True)
class UnderNoised(Mechanism):
    """A mechanism whose event does not tell the truth about its noise."""

    claimed: GaussianMeans
    factor: float

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        return self.claimed.event(embeddings, known)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        return self.claimed.privatize(embeddings, _Scaled(noise, self.factor), known)


@dataclass(frozen=True)
class _Scaled:
    noise: Noise
    factor: float

    def normal(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        return self.factor * self.noise.normal(shape)

    def laplace(self, shape: tuple[int, ...]) -> Float64[np.ndarray, "..."]:
        return self.factor * self.noise.laplace(shape)
