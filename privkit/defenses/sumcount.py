"""Sums and counts: Gaussian noise on every class's sum and on its number of records, present or not.

With ``z_i`` clipped to length R, a client sends ``(sum_i z_i, R n_c)`` of every class ``c`` there is, with noise of
standard deviation ``sigma s`` on each number, where ``s`` is how far one record can move all of them together:

* replace, same label: one block moves by ``(z - z', 0)``, at most ``2R``;
* replace, another label: two blocks move by ``(z, R)`` and ``(z', R)``, at most ``sqrt(R^2 + R^2 + R^2 + R^2) = 2R``;
* add or remove: one block moves by ``(z, R)``, at most ``sqrt(2) R``.

So it is one Gaussian mechanism with noise multiplier ``sigma``. The noise on a sum is what IGPP puts on a mean times
its count; what is gained is that labels and counts are hidden as well, and no exact count scales, weighs or leaves
with anything. The price is a division by a noisy count.

Source: corrections to the accounting analysis, (sum, R count)
"""

from dataclasses import dataclass

import numpy as np
from pydantic import Field

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from accountant.events import Gaussian
from accountant.gaussian import sigma_from_epsilon
from accountant.relations import reach
from privkit.clip import clip_to_ball
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses._means import announced, class_sums
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.release import SumsAndCounts
from privkit.truth import Hidden


class SumCount(AbstractReleaseDefense):
    """Noisy sums and counts of all classes, which hide a record's label too."""

    epsilon: float = Field(gt=0, description="privacy loss promised for the whole run, in nats")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    clip_norm: float = Field(default=1.0, gt=0, description="R, largest l2 norm of one record's embedding")
    relation: Relation = Field(
        default=Relation.REPLACE_ANY_LABEL, description="which data sets the promise makes indistinguishable"
    )
    hyperparameters: DependsOn = Field(
        default=DependsOn.PUBLIC, description="what R, epsilon and the rounds were chosen from"
    )

    @property
    def promise(self) -> Promise:
        return Promise(self.epsilon, self.delta)

    def mechanism(self, *, rounds: int) -> "GaussianSums":
        return GaussianSums(
            noise_multiplier=sigma_from_epsilon(epsilon=self.epsilon, delta=self.delta, rounds=rounds),
            clip_norm=self.clip_norm,
            relation=self.relation,
            hyperparameters=self.hyperparameters,
        )


@dataclass(frozen=True, kw_only=True)
class GaussianSums(Mechanism):
    """Clipped class sums and counts with Gaussian noise.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the relation, no unit.
        clip_norm: R.
        relation: which data sets count as neighbours.
        hyperparameters: what these were chosen from.
    """

    noise_multiplier: float
    clip_norm: float
    relation: Relation
    hyperparameters: DependsOn

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        contract = Contract(
            relation=self.relation,
            query=Query.SUMS_AND_COUNTS,
            clip_norm=self.clip_norm,
            encoder=embeddings.encoder,
            assignment=DependsOn.PUBLIC,
            counts=Counts.NOT_USED,
            hyperparameters=self.hyperparameters,
            fresh_noise=True,
        )
        return Gaussian(noise_multiplier=self.noise_multiplier, contract=contract)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        labels = announced(known, by="sumcount")
        clipped = embeddings.with_vectors(clip_to_ball(embeddings.vectors, norm=self.clip_norm))
        sums = class_sums(clipped, labels)
        # in clip norms, which is the unit of a count as well
        std = self.noise_multiplier * reach(Query.SUMS_AND_COUNTS, self.relation)
        drawn_Pd = std * noise.normal((len(labels), sums.vectors.shape[1] + 1))
        payload = SumsAndCounts(
            vectors=(sums.vectors + self.clip_norm * drawn_Pd[:, :-1]).astype(np.float32),
            labels=labels,
            totals=sums.counts + drawn_Pd[:, -1],
        )
        one_group = np.zeros(sums.vectors.shape[1], dtype=np.int64)
        return Privatized(
            payload, self.event(embeddings, known), Hidden(sums.vectors, one_group, counts=sums.counts)
        )
