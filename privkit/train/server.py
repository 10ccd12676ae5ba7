"""The server, as an object: the honest one by default, so that a malicious one can be passed instead."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from privkit.methods._base import AbstractMethod, State
from privkit.release import Payload


class AbstractServer(ABC):
    """What happens between the clients' messages and what each client gets back."""

    @abstractmethod
    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        """Return the server's state after one round's messages, keyed by client."""

    @abstractmethod
    def shared(self, method: AbstractMethod, state: State) -> State:
        """Return what all clients get alike."""

    @abstractmethod
    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        """Return what one client gets besides; what is named here hides what all get.

        So a client may be told something else than its neighbour: every client is then given the same names.
        """


class HonestServer(AbstractServer):
    """Does what the method says."""

    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        return method.merge(state, method.arrived(uploads))

    def shared(self, method: AbstractMethod, state: State) -> State:
        return method.shared(state)

    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        return method.down(state, client)
