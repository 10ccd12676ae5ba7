"""No defense: what the method makes of its embeddings, as it is."""

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
from privkit.release import Update
from privkit.truth import Hidden
from privkit.weights import Weights


class Nothing(AbstractReleaseDefense):
    """Release every class mean, or what a method sends in its place, without clip or noise. It promises nothing."""

    def mechanism(self, *, rounds: int) -> "PlainMeans":
        return PlainMeans()


@dataclass(frozen=True)
class PlainMeans(Mechanism):
    """What the method's rule makes of records, exactly; class means and counts for most."""

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> NonPrivate:
        contract = Contract(
            encoder=embeddings.encoder, assignment=known.summary.assignment, counts=Counts.PUBLIC
        )
        return NonPrivate(contract=contract)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        means = class_means(embeddings, known)
        sent = known.summary.plain(embeddings, means.labels, means.counts, means.vectors)
        one_group = np.zeros(means.vectors.shape[1], dtype=np.int64)
        return Privatized(sent.payload, self.event(embeddings, known), Hidden(sent.vectors, one_group))

    def weights_event(self, weights: Weights) -> NonPrivate:
        return NonPrivate(contract=Contract(encoder=weights.depends_on))

    def privatize_weights(self, weights: Weights, noise: Noise) -> PrivatizedWeights:
        return PrivatizedWeights(Update(named=weights.named, means="weights"), self.weights_event(weights))
