"""The role of a defense that turns a client's private embeddings into a message."""

from abc import abstractmethod
from typing import NamedTuple, Protocol, runtime_checkable

from accountant.events import Event
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.plug import Plugin
from privkit.release import Prototypes


class Promise(NamedTuple):
    """What a defense says it gives for the whole run: epsilon in nats, delta a probability."""

    epsilon: float
    delta: float


@runtime_checkable
class Mechanism(Protocol):
    """A calibrated defense: the only place where a payload and its event are made."""

    def privatize(self, embeddings: Embeddings, noise: Noise) -> tuple[Prototypes, Event]:
        """Return one message and what it cost."""
        ...


class AbstractReleaseDefense(Plugin):
    """Turns the embeddings of one client into the message of one round."""

    @property
    def promise(self) -> Promise | None:
        """Return the guarantee promised for the whole run, or ``None``."""
        return None

    @abstractmethod
    def mechanism(self, *, rounds: int) -> Mechanism:
        """Return this defense, calibrated for a number of rounds."""
