"""The roles of a defense: it turns private embeddings into a message, and may change local training."""

from abc import abstractmethod
from typing import NamedTuple, Protocol, runtime_checkable

from accountant.events import Event
from privkit.defenses._local import AsPublished, LocalRule
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.plug import Plugin
from privkit.release import Prototypes
from privkit.truth import Hidden


class Promise(NamedTuple):
    """What a defense says it gives for the whole run: epsilon in nats, delta a probability."""

    epsilon: float
    delta: float


class Privatized(NamedTuple):
    """One message, what it cost, and what was computed on the way to it and stays with the client."""

    payload: Prototypes
    event: Event
    hidden: Hidden


@runtime_checkable
class Mechanism(Protocol):
    """A calibrated defense: the only place where a payload and its event are made."""

    def privatize(self, embeddings: Embeddings, noise: Noise) -> Privatized:
        """Return one message and what it cost."""
        ...


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

    @abstractmethod
    def mechanism(self, *, rounds: int) -> Mechanism:
        """Return this defense, calibrated for a number of rounds."""
