r"""DP for clients that send trained weights: one clip and Gaussian noise on the whole upload, or DP-SGD below it.

``level: client``. A client sends ``w_r + clip_C(w - w_r) + N(0, (sigma s C)^2)``: ``w_r`` is what it last received,
which the server knows, and the clip is one l2 norm over all that is sent, statistics included (``w_r`` is 0 for these).
Neighbours differ in *all* of the client's data. Both clipped changes lie in the ball of radius C, so replacing one by
the other moves the message by at most ``s C = 2 C``, which a change and its negative reach; if a client that is zeroed
out sends ``w_r``, by ``s C = C``. Whatever the change was computed from, the client's own earlier state included, is
inside the clip: each round is one Gaussian mechanism of multiplier sigma, and rounds compose adaptively over those in
which the client really sent. The client adds the noise itself: the guarantee is local.

``level: record``. Local training is DP-SGD (Abadi et al., 2016, Algorithm 1): a step takes each record with probability
``q = min(1, batch_size / n)``, clips each record's gradient by all parameters that the step trains to C, adds noise
``N(0, (sigma C)^2)`` to the sum and divides by ``q n``. What is sent follows from that, so it costs its steps: noise on
the sent gradient alone would not do, since a map that stays with the client is trained on the same records.

Source: McMahan et al. (2018), "Learning differentially private recurrent language models", Algorithm 1 (client level)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field, model_validator

from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from accountant.events import Composed, Event, Gaussian, Repeated, SubsampledGaussian
from accountant.gaussian import sigma_from_epsilon
from accountant.relations import reach
from privkit.clip import clip_to_ball
from privkit.defenses._base import (
    NOTHING,
    AbstractReleaseDefense,
    Known,
    Mechanism,
    Privatized,
    PrivatizedWeights,
    Promise,
)
from privkit.defenses._by_record import RecordNoise
from privkit.defenses._local import AsPublished, LocalRule
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Noise
from privkit.release import Update
from privkit.truth import Hidden
from privkit.weights import Weights

if TYPE_CHECKING:
    from privkit.methods._base import AbstractMethod

UNIT = "one client's whole data"
_NOT_TRAINED = Composed(events=())
"""What sending the weights costs that everybody began with."""


class DpHead(AbstractReleaseDefense):
    """Gaussian noise for methods that send weights, at the level of a client or of a record.

    Weights as everybody began with them, which are sent before anything is trained, go as they are and cost nothing.
    """

    citation: ClassVar[str] = "mcmahan2018, abadi2016deep"

    level: Literal["client", "record"] = Field(
        default="client", description="whose presence is hidden: all data of a client, or one record"
    )
    epsilon: float | None = Field(
        default=None,
        gt=0,
        description="privacy loss promised for the whole run, in nats, for a client that sends in every round; level "
        "client only",
    )
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    noise_multiplier: float | None = Field(
        default=None,
        gt=0,
        description="in the place of epsilon: noise standard deviation / how far one client (or record) moves what it "
        "is added to",
    )
    clip_norm: float = Field(
        default=1.0, gt=0, description="C, largest l2 norm of a client's change (or of a record's gradient)"
    )
    relation: Relation | None = Field(
        default=None,
        description="which data sets the promise makes indistinguishable; by default, replace one client's data, or "
        "at level record add or remove one record",
    )
    hyperparameters: DependsOn = Field(
        default=DependsOn.PUBLIC, description="what C, noise and rounds were chosen from"
    )

    @model_validator(mode="after")
    def _one_noise(self) -> "DpHead":
        if (self.epsilon is None) == (self.noise_multiplier is None):
            raise ValueError("give one of epsilon and noise_multiplier")
        if self.level == "record" and self.epsilon is not None:
            raise ValueError(
                "level record takes a noise_multiplier, since steps and sampling rates differ by client; leave out "
                "epsilon, and ask `privkit calibrate dpsgd` for one"
            )
        query = Query.CLIENT_UPDATE if self.level == "client" else Query.RECORD_SUM
        reach(query, self.neighbours)
        return self

    @property
    def neighbours(self) -> Relation:
        """Return which data sets are neighbours."""
        default = Relation.REPLACE_CLIENT if self.level == "client" else Relation.ADD_REMOVE
        return default if self.relation is None else self.relation

    @property
    def promise(self) -> Promise | None:
        return None if self.epsilon is None else Promise(self.epsilon, self.delta)

    @property
    def local(self) -> LocalRule:
        if self.level == "client" or self.noise_multiplier is None:
            return AsPublished()
        std = self.noise_multiplier * reach(Query.RECORD_SUM, self.neighbours)
        return RecordNoise(clip_norm=self.clip_norm, noise_std=std * self.clip_norm)

    def refuse_method(self, method: "AbstractMethod") -> None:
        if self.level == "record" and not method.reads_only_in_phases:
            raise ValueError(
                f"defense dphead at level record makes the steps of local training private, and method {method.name} "
                "reads records elsewhere too; take level client, or another method"
            )

    def mechanism(self, *, rounds: int) -> "ClippedUpdates | PrivateSteps":
        if self.level == "record":
            assert self.noise_multiplier is not None
            return PrivateSteps(
                noise_multiplier=self.noise_multiplier,
                clip_norm=self.clip_norm,
                relation=self.neighbours,
                hyperparameters=self.hyperparameters,
            )
        sigma = self.noise_multiplier
        if sigma is None:
            assert self.epsilon is not None
            sigma = sigma_from_epsilon(epsilon=self.epsilon, delta=self.delta, rounds=rounds)
        return ClippedUpdates(
            noise_multiplier=sigma,
            clip_norm=self.clip_norm,
            relation=self.neighbours,
            hyperparameters=self.hyperparameters,
        )


@dataclass(frozen=True, kw_only=True)
class _OfWeights(Mechanism):
    """What both levels have: numbers, and that prototypes are refused.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the relation, no unit.
        clip_norm: C.
        relation: which data sets count as neighbours.
        hyperparameters: what these were chosen from.
    """

    noise_multiplier: float
    clip_norm: float
    relation: Relation
    hyperparameters: DependsOn

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Event:
        raise InputError(
            "defense dphead protects trained weights, and the method sends prototypes; use igpp, vpp or sumcount, or a "
            "method that sends weights."
        )

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        self.event(embeddings, known)
        raise TypeError("event() refuses all embeddings")


@dataclass(frozen=True, kw_only=True)
class ClippedUpdates(_OfWeights):
    """A client's whole change, clipped to one ball, with isotropic Gaussian noise."""

    def weights_event(self, weights: Weights) -> Event:
        if weights.as_all_began:
            return _NOT_TRAINED
        contract = Contract(
            relation=self.relation,
            query=Query.CLIENT_UPDATE,
            unit=UNIT,
            clip_norm=self.clip_norm,
            encoder=weights.depends_on,
            hyperparameters=self.hyperparameters,
            fresh_noise=True,
        )
        return Gaussian(noise_multiplier=self.noise_multiplier, contract=contract)

    def privatize_weights(self, weights: Weights, noise: Noise) -> PrivatizedWeights:
        event = self.weights_event(weights)
        if weights.as_all_began:
            return PrivatizedWeights(Update(named=weights.named, means="weights"), event)
        received_D, sent_D = flattened(weights)
        clipped_D = clip_to_ball((sent_D - received_D)[None], norm=self.clip_norm)[0]
        noisy_D = received_D + clipped_D + self.noise_std * noise.normal(clipped_D.shape)
        payload = Update(named=shaped(noisy_D, weights.named), means="weights")
        one_group = np.zeros(len(clipped_D), dtype=np.int64)
        hidden = Hidden((received_D + clipped_D)[None], one_group, received=received_D)
        return PrivatizedWeights(payload, event, hidden)

    @property
    def noise_std(self) -> float:
        """Return the standard deviation of the noise on every number."""
        return self.noise_multiplier * reach(Query.CLIENT_UPDATE, self.relation) * self.clip_norm


@dataclass(frozen=True, kw_only=True)
class PrivateSteps(_OfWeights):
    """Weights that DP-SGD trained, as they are."""

    def weights_event(self, weights: Weights) -> Event:
        odd = sorted(set(weights.named) - set(weights.received))
        if odd:
            raise InputError(
                f"{odd[0]} is sent and is no trained weight, and at level record only steps of training are private; "
                "set level to client."
            )
        if weights.as_all_began:
            return _NOT_TRAINED
        contract = Contract(
            relation=self.relation,
            query=Query.RECORD_SUM,
            clip_norm=self.clip_norm,
            encoder=DependsOn.PAST_OUTPUTS,  # everything that is trained has the noise
            assignment=DependsOn.PUBLIC,
            counts=Counts.PUBLIC,
            hyperparameters=self.hyperparameters,
            fresh_noise=True,
        )
        step = SubsampledGaussian(
            noise_multiplier=self.noise_multiplier, sampling_rate=weights.sampling_rate, contract=contract
        )
        return step if weights.steps == 1 else Repeated(event=step, count=weights.steps)

    def privatize_weights(self, weights: Weights, noise: Noise) -> PrivatizedWeights:
        return PrivatizedWeights(Update(named=weights.named, means="weights"), self.weights_event(weights))


def flattened(weights: Weights) -> tuple[Float64[np.ndarray, " D"], Float64[np.ndarray, " D"]]:
    """Return what a client received and what it would send, each as one vector; what it never received is 0.

    Raises:
        InputError: a number is not finite.
    """
    names = sorted(weights.named)
    sent_D = np.concatenate([np.ravel(weights.named[name]).astype(np.float64) for name in names])
    before = [weights.received.get(name, np.zeros(np.shape(weights.named[name]))) for name in names]
    received_D = np.concatenate([np.ravel(array).astype(np.float64) for array in before])
    if not (np.isfinite(sent_D).all() and np.isfinite(received_D).all()):
        raise InputError(
            "a client's weights hold a number that is not finite, which no clip bounds; lower "
            "method.training.learning_rate."
        )
    return received_D, sent_D


def shaped(vector_D: Float64[np.ndarray, " D"], like: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return one vector as named float32 arrays of the shapes of others, in the order of their names."""
    names = sorted(like)
    ends = np.cumsum([np.size(like[name]) for name in names])[:-1]
    parts = np.split(vector_D, ends)
    return {
        n: part.reshape(np.shape(like[n])).astype(np.float32) for n, part in zip(names, parts, strict=True)
    }
