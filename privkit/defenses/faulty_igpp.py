"""IGPP with a fault in it, for checking that an audit catches it. Never use it to protect anything."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pydantic import Field, field_serializer, field_validator

from accountant.events import Gaussian
from privkit import plug
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses._means import ClassMeans, class_means, refuse_single_records
from privkit.defenses.faults._base import AbstractFault
from privkit.defenses.faults.low_noise import LowNoise
from privkit.defenses.igpp import GaussianMeans, Igpp
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.release import Prototypes
from privkit.truth import Hidden


class FaultyIgpp(AbstractReleaseDefense):
    """IGPP that claims to be correct and is not: one step of it is replaced by a fault."""

    claims: Igpp = Field(description="the defense it claims to be")
    fault: AbstractFault = Field(default_factory=LowNoise, description="what is wrong with it")

    @field_validator("fault", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        return value if isinstance(value, AbstractFault) else plug.build("privkit.defenses.faults", value)

    @field_serializer("fault")
    def _plain(self, fault: AbstractFault) -> dict[str, Any]:
        return fault.settings()

    @property
    def promise(self) -> Promise:
        return self.claims.promise

    def mechanism(self, *, rounds: int) -> "FaultyMeans":
        return FaultyMeans(self.claims.mechanism(rounds=rounds), self.fault)


@dataclass(frozen=True)
class FaultyMeans(Mechanism):
    """A mechanism whose event does not tell the truth about it."""

    claimed: GaussianMeans
    fault: AbstractFault

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        honest = self.claimed.event(embeddings, known)
        return replace(honest, contract=self.fault.contract(honest.contract))

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        clipped = self.fault.clip(embeddings.vectors, norm=self.claimed.clip_norm)
        means = class_means(embeddings.with_vectors(clipped), known)
        refuse_single_records(means, least=self.claimed.smallest_class)
        drawn_Pd = self.fault.draw(noise, means.vectors.shape, known.memory)
        noisy = means.vectors + self._std(means)[:, None] * drawn_Pd
        payload = Prototypes(
            vectors=noisy.astype(np.float32),
            labels=means.labels,
            counts=means.counts if self.fault.sends_counts else None,
        )
        one_group = np.zeros(means.vectors.shape[1], dtype=np.int64)
        return Privatized(payload, self.event(embeddings, known), Hidden(means.vectors, one_group))

    def remember(self, known: Known, sent: Privatized) -> Mapping[str, np.ndarray]:
        payload, clean = sent.payload.prototypes(), sent.hidden.means
        if payload.counts is None:
            return {}
        std_P = self._std(ClassMeans(clean, payload.labels, payload.counts))
        return self.fault.remember(known.memory, (payload.vectors - clean) / std_P[:, None])

    def _std(self, means: ClassMeans) -> np.ndarray:
        return self.fault.noise_std(self.claimed.noise_std(means), means)
