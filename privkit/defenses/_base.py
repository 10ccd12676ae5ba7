"""The roles of a defense: it turns private embeddings into a message, and may change local training."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from accountant.contract import DependsOn
from accountant.events import Event
from privkit.defenses._local import AsPublished, LocalRule
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Noise
from privkit.plug import Plugin
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes.mean import Mean
from privkit.release import ByClass, Payload, Update
from privkit.transcript import Records
from privkit.truth import Hidden
from privkit.weights import Weights

if TYPE_CHECKING:
    from privkit.methods._base import AbstractMethod


class Promise(NamedTuple):
    """What a defense says it gives for the whole run: epsilon in nats, delta a probability."""

    epsilon: float
    delta: float


class Privatized(NamedTuple):
    """One message, what it cost, and what was computed on the way to it and stays with the client."""

    payload: ByClass
    event: Event
    hidden: Hidden


class PrivatizedWeights(NamedTuple):
    """One message of trained parameters, what it cost, and what stays with the client, where noise was added."""

    payload: Update
    event: Event
    hidden: Hidden | None = None


class Sent(NamedTuple):
    """One message of either kind.

    Attributes:
        payload: what leaves.
        event: what it cost.
        hidden: what stays with the client, where the message is about records.
        known: what the mechanism may read before its next message.
    """

    payload: Payload
    event: Event
    hidden: Hidden | None
    known: "Known"


class Known(NamedTuple):
    """What a mechanism may read for free: none of it depends on a record that was not paid for already.

    Attributes:
        labels: every class that a message may be about, ascending, shape [C]; ``None`` when there is no such list.
        classes: number of real classes, from 0; labels from there on are canaries'. ``None`` when all are real.
        public: records that anybody may see, under an encoder that anybody may use.
        memory: what the mechanism kept of its own earlier messages.
        summary: how records become prototypes: the rule, not what it gives.
    """

    labels: Int64[np.ndarray, " C"] | None = None
    classes: int | None = None
    public: Embeddings | None = None
    memory: Mapping[str, np.ndarray] = {}
    summary: AbstractPrototypes = Mean()

    @classmethod
    def at_first(
        cls,
        *,
        client: int,
        classes: int,
        canaries: Records | None,
        owned: Records | None,
        summary: AbstractPrototypes | None = None,
    ) -> "Known":
        """Return what a client's mechanism may read before its first message.

        Args:
            client: whose mechanism it is.
            classes: number of real classes, from 0.
            canaries: that the clients of the run plant.
            owned: records that the attacker owns; those of the client's domain are public to it.
            summary: how records become prototypes; class means by default.
        """
        labels = np.arange(classes)
        if canaries is not None:
            labels = np.union1d(labels, canaries.of(client).labels)
        mine = None if owned is None else owned.of(client)
        summary = Mean() if summary is None else summary
        if not mine:
            return cls(labels=labels, classes=classes, summary=summary)
        public = Embeddings(
            vectors=mine.vectors.astype(np.float64), labels=mine.labels, encoder=DependsOn.PUBLIC
        )
        return cls(labels=labels, classes=classes, public=public, summary=summary)

    def real(self, labels_N: Int64[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
        """Return which labels are no canary's."""
        return np.ones(len(labels_N), dtype=bool) if self.classes is None else labels_N < self.classes

    def without_canaries(self, embeddings: Embeddings) -> Embeddings:
        """Return the records that are no canary's: the same object where all are real."""
        real_N = self.real(embeddings.labels)
        return embeddings if real_N.all() else embeddings.where(real_N)


NOTHING = Known()

Private = Embeddings | Weights
"""What a message is made of."""


class Mechanism(ABC):
    """A calibrated defense: the only place where a payload and its event are made."""

    @abstractmethod
    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Event:
        """Return what the next message will cost, before any noise is drawn."""

    @abstractmethod
    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        """Return one message and what it cost, which is what :meth:`event` says."""

    def cost(self, private: Private, known: Known) -> Event:
        """Return what a message made of embeddings, or of weights, will cost."""
        return self.weights_event(private) if isinstance(private, Weights) else self.event(private, known)

    def send(self, private: Private, noise: Noise, known: Known) -> Sent:
        """Return a message made of embeddings, or of weights."""
        if isinstance(private, Weights):
            return Sent(*self.privatize_weights(private, noise), known)
        sent = self.privatize(private, noise, known)
        return Sent(*sent, known._replace(memory=self.remember(known, sent)))

    def weights_event(self, weights: Weights) -> Event:
        """Return what sending trained parameters will cost; a mechanism for prototypes refuses them."""
        raise InputError(
            f"{type(self).__name__} protects prototypes, and the method sends trained weights; use defense none or "
            "dphead, or a method that sends prototypes."
        )

    def privatize_weights(self, weights: Weights, noise: Noise) -> PrivatizedWeights:
        """Return one message of trained parameters and what it cost, which is what :meth:`weights_event` says."""
        self.weights_event(weights)
        raise TypeError(
            f"{type(self).__name__} states a cost of weights and sends none; define privatize_weights."
        )

    def remember(self, known: Known, sent: Privatized) -> Mapping[str, np.ndarray]:
        """Return what later messages may read of the messages up to this one; nothing by default."""
        return {}


class AbstractReleaseDefense(Plugin):
    """Turns the embeddings of one client into the message of one round."""

    @property
    def promise(self) -> Promise | None:
        """Return the guarantee promised for the whole run, or ``None``."""
        return None

    @property
    def local(self) -> LocalRule:
        """Return what the defense changes in local training; nothing by default."""
        return AsPublished()

    def refuse_method(self, method: "AbstractMethod") -> None:
        """Raise if the defense has no meaning for a method; asked of every configuration.

        Raises:
            ValueError: it has none.
        """

    @abstractmethod
    def mechanism(self, *, rounds: int) -> Mechanism:
        """Return this defense, calibrated for a number of rounds."""
