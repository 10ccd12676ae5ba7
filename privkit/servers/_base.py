"""What a server is: the honest one does what the method says; a malicious one is another file beside it."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from privkit.methods._base import AbstractMethod, State
from privkit.plug import Plugin
from privkit.release import Payload


class AbstractServer(Plugin):
    """What happens between the clients' messages and what each client gets back.

    A server keeps nothing but the state that it returns: so a killed run goes on as if nothing had happened.
    """

    malicious: ClassVar[bool] = False
    """Whether it answers with anything else than what the method says."""

    def refuse_method(self, method: AbstractMethod) -> None:
        """Raise if it can do nothing with the messages of a method; asked before anything is trained.

        Raises:
            InputError: it cannot.
        """

    def start(self, method: AbstractMethod, *, dim: int, num_classes: int, seed: int) -> State:
        """Return the server's state before the first round."""
        return method.start(dim=dim, num_classes=num_classes, seed=seed)

    @abstractmethod
    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        """Return the server's state after one round's messages, keyed by client."""

    def shared(self, method: AbstractMethod, state: State) -> State:
        """Return what all clients get alike."""
        return method.shared(state)

    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        """Return what one client gets besides; what is named here hides what all get.

        So a client may be told something else than its neighbour: every client is then given the same names.
        """
        return method.down(state, client)
