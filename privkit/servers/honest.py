"""The server of every paper: it does what the method says, and wonders at most."""

from collections.abc import Mapping

from privkit.methods._base import AbstractMethod, State
from privkit.release import Payload
from privkit.servers._base import AbstractServer


class HonestServer(AbstractServer):
    """Does what the method says."""

    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        return method.merge(state, method.arrived(uploads))
