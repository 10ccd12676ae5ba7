"""The server, as an object: the honest one by default, so that a malicious one can be passed instead."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from privkit.methods._base import AbstractMethod, State
from privkit.release import ByClass


class AbstractServer(ABC):
    """What happens between the clients' messages and what each client gets back."""

    @abstractmethod
    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, ByClass]) -> State:
        """Return the server's state after one round's messages, keyed by client."""

    @abstractmethod
    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        """Return what one client gets; a client may be told something else than its neighbour."""


class HonestServer(AbstractServer):
    """Does what the method says."""

    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, ByClass]) -> State:
        return method.merge(state, uploads)

    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        return method.down(state, client)
