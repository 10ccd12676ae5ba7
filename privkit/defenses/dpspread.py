"""Sums of moments: Gaussian noise on every class's count, sum, squares and uncertainties, present or not.

With ``z`` clipped to length R, every record adds ``(a0, a1 z/R, a2 (z*z)/R^2, a3 epistemic, a4 aleatoric)`` to the
block of its class, both uncertainties as shares of the most there can be, and Gaussian noise is put on all blocks of
all classes that there are: one query per round. One record touches one block (two, if its label is replaced), so how
far it can move all of them together is known in closed form, stated and proved in :mod:`accountant.moments`:
``S = sqrt(sum a_k^2)`` for a record that comes or goes, ``sqrt(2) S`` at most for one that is replaced by another
class's, and ``2 a1`` (while ``a1^2 >= 2 a2^2`` and no uncertainty is sent) for one of its own class.

Means, spreads, mean uncertainties, counts and which classes are there follow by post-processing, which costs nothing
(:class:`privkit.release.Moments`). Methods that want means alone read it as they read `sumcount`.

Uncertainties are what the client's own head says, and the head was trained on the same records: with ``a3`` or ``a4``
above 0 one record can move everybody's, no sensitivity holds, and the contract says so. A spread costs more than a
mean: ``z*z`` of a record has entries of about ``R^2/d``, and the noise on each is that of a whole ``R^2``.

Source: this release is ours; what it is of is FedUP, Eqs. 9 to 12
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import Field, field_validator

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from accountant.events import Gaussian
from accountant.gaussian import sigma_from_epsilon
from accountant.moments import moments_sensitivity, refuse_no_weights
from privkit.clip import clip_to_ball
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses._means import announced, class_sums
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.evidential import largest_epistemic
from privkit.noise import Noise
from privkit.release import Moments
from privkit.truth import Hidden

Weights = tuple[float, float, float, float, float]


class DpSpread(AbstractReleaseDefense):
    """Noisy sums of the moments of all classes: what Gaussian prototypes are made of, a record's label hidden too."""

    epsilon: float = Field(gt=0, description="privacy loss promised for the whole run, in nats")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    clip_norm: float = Field(default=1.0, gt=0, description="R, largest l2 norm of one record's embedding")
    weights: Weights = Field(
        default=(1.0, 1.0, 0.5, 0.0, 0.0),
        description="a0 to a4, no unit: how much of the noise's budget count, sum, squares, epistemic and aleatoric "
        "uncertainty get; only ratios matter, the first two are above 0, and what has 0 is not sent",
    )
    threshold: float = Field(
        default=4.0,
        ge=0,
        description="classes whose noisy count is below this many standard deviations of its noise, or below 1, are "
        "taken for absent by the server",
    )
    relation: Relation = Field(
        default=Relation.REPLACE_ANY_LABEL, description="which data sets the promise makes indistinguishable"
    )
    hyperparameters: DependsOn = Field(
        default=DependsOn.PUBLIC, description="what R, epsilon, the weights and the rounds were chosen from"
    )

    @field_validator("weights")
    @classmethod
    def _are_weights(cls, weights: Weights) -> Weights:
        refuse_no_weights(weights)
        return weights

    @property
    def promise(self) -> Promise:
        return Promise(self.epsilon, self.delta)

    def mechanism(self, *, rounds: int) -> "GaussianMoments":
        return GaussianMoments(
            noise_multiplier=sigma_from_epsilon(epsilon=self.epsilon, delta=self.delta, rounds=rounds),
            clip_norm=self.clip_norm,
            weights=self.weights,
            threshold=self.threshold,
            relation=self.relation,
            hyperparameters=self.hyperparameters,
        )


@dataclass(frozen=True, kw_only=True)
class GaussianMoments(Mechanism):
    """Sums of weighted moments of clipped records with Gaussian noise.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the relation, no unit.
        clip_norm: R.
        weights: a0 to a4.
        threshold: below which a class is absent, in standard deviations of the noise on a count.
        relation: which data sets count as neighbours.
        hyperparameters: what these were chosen from.
    """

    noise_multiplier: float
    clip_norm: float
    weights: Weights
    threshold: float
    relation: Relation
    hyperparameters: DependsOn

    @property
    def uncertain(self) -> bool:
        """Return whether uncertainties are sent."""
        return max(self.weights[3:]) > 0

    @property
    def std(self) -> float:
        """Return the standard deviation of the noise, in units of the query."""
        return self.noise_multiplier * moments_sensitivity(self.weights, self.relation)

    @property
    def least(self) -> float:
        """Return the noisy count below which a class is taken for absent, at least 1."""
        return max(1.0, self.threshold * self.std / self.weights[0])

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Gaussian:
        contract = Contract(
            relation=self.relation,
            query=Query.MOMENTS,
            clip_norm=self.clip_norm,
            encoder=DependsOn.PRIVATE_STATE if self.uncertain else embeddings.encoder,
            assignment=DependsOn.PUBLIC,
            counts=Counts.NOT_USED,
            hyperparameters=self.hyperparameters,
            fresh_noise=True,
            weights=self.weights,
        )
        return Gaussian(noise_multiplier=self.noise_multiplier, contract=contract)

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        labels, d = announced(known, by="dpspread"), embeddings.vectors.shape[1]
        scale_D = self._scale(d)
        sums = class_sums(embeddings.with_vectors(self._moments(embeddings, known)), labels)
        drawn_PD = (
            self.std * noise.normal((len(labels), 1 + len(scale_D))) / np.append(scale_D, self.weights[0])
        )
        clean_PD, noisy_PD = sums.vectors, sums.vectors + drawn_PD[:, :-1]
        payload = self._payload(labels, noisy_PD, sums.counts + drawn_PD[:, -1], d)
        hidden = Hidden(
            clean_PD[:, :d],
            np.zeros(d, dtype=np.int64),
            counts=sums.counts,
            moments=clean_PD[:, d:] if clean_PD.shape[1] > d else None,
        )
        return Privatized(payload, self.event(embeddings, known), hidden)

    def _scale(self, d: int) -> Float64[np.ndarray, " D"]:
        """Return what a number of each column, in its own unit, is multiplied by in the query."""
        _, a1, a2, a3, a4 = self.weights
        parts = [(a1 / self.clip_norm, d), (a2 / self.clip_norm**2, d), (a3, 1), (a4, 1)]
        return np.concatenate([np.full(width, a) for a, width in parts if a > 0])

    def _moments(self, embeddings: Embeddings, known: Known) -> Float64[np.ndarray, "N D"]:
        """Return what each record adds to its class besides 1: columns in their own units."""
        z_Nd = clip_to_ball(embeddings.vectors, norm=self.clip_norm)
        parts = [z_Nd, *([z_Nd**2] if self.weights[2] > 0 else [])]
        if self.uncertain:
            shares_N2 = _shares(embeddings, known)
            parts += [shares_N2[:, [k]] for k in (0, 1) if self.weights[3 + k] > 0]
        return np.concatenate(parts, axis=1)

    def _payload(
        self,
        labels: Int64[np.ndarray, " P"],
        noisy_PD: Float64[np.ndarray, "P D"],
        totals: Float64[np.ndarray, " P"],
        d: int,
    ) -> Moments:
        _, _, a2, a3, a4 = self.weights
        first = 2 * d if a2 > 0 else d
        return Moments(
            vectors=noisy_PD[:, :d].astype(np.float32),
            labels=labels,
            totals=totals,
            squares=noisy_PD[:, d:first].astype(np.float32) if a2 > 0 else None,
            epistemic=noisy_PD[:, first] if a3 > 0 else None,
            aleatoric=noisy_PD[:, -1] if a4 > 0 else None,
            least=self.least,
        )


def _shares(embeddings: Embeddings, known: Known) -> Float64[np.ndarray, "N 2"]:
    """Return each record's uncertainties as shares of the most that there can be, in [0, 1]."""
    found = embeddings.statistics
    if found is None or found.shape[1] != 2:
        raise InputError(
            "dpspread's weights a3 and a4 ask for uncertainties, and the method says none of its records; set both to "
            "0, or take method fedup."
        )
    classes = known.classes or len(announced(known, by="dpspread"))
    if classes < 2:
        raise InputError(
            "uncertainties need at least 2 classes, and 1 was announced; set weights a3 and a4 to 0."
        )
    return np.clip(found / np.array([largest_epistemic(classes), math.log(classes)]), 0.0, 1.0)
