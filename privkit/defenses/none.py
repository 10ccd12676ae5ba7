"""No defense: the class means as they are."""

from dataclasses import dataclass

import numpy as np

from accountant.contract import Contract, Counts
from accountant.events import NonPrivate
from privkit.defenses._base import (
    NOTHING,
    AbstractReleaseDefense,
    Known,
    Mechanism,
    Privatized,
    PrivatizedWeights,
)
from privkit.defenses._means import class_means
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.release import Prototypes, Update
from privkit.truth import Hidden
from privkit.weights import Weights


class Nothing(AbstractReleaseDefense):
    """Release every class mean without clip or noise. It promises nothing."""

    def mechanism(self, *, rounds: int) -> "PlainMeans":
        return PlainMeans()


@dataclass(frozen=True)
class PlainMeans(Mechanism):
    """Class means and counts, exactly."""

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> NonPrivate:
        contract = Contract(
            encoder=embeddings.encoder, assignment=known.summary.assignment, counts=Counts.PUBLIC
        )
        return NonPrivate(contract=contract)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        means = class_means(embeddings, known)
        payload = Prototypes(
            vectors=means.vectors.astype("float32"), labels=means.labels, counts=means.counts
        )
        one_group = np.zeros(means.vectors.shape[1], dtype=np.int64)
        return Privatized(payload, self.event(embeddings, known), Hidden(means.vectors, one_group))

    def weights_event(self, weights: Weights) -> NonPrivate:
        return NonPrivate(contract=Contract(encoder=weights.depends_on))

    def privatize_weights(self, weights: Weights, noise: Noise) -> PrivatizedWeights:
        return PrivatizedWeights(Update(named=weights.named, means="weights"), self.weights_event(weights))
