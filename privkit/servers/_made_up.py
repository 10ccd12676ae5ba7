"""What malicious servers of prototype methods share: messages that they make up, and a state of their own."""

import numpy as np
from jaxtyping import Float

from privkit.errors import InputError
from privkit.methods._base import AbstractMethod, Sends, State
from privkit.release import ByClass, Prototypes
from privkit.servers._base import AbstractServer

_OWN = "poison."


def refuse_no_prototypes(server: AbstractServer, method: AbstractMethod) -> None:
    """Raise if the clients of a method send no prototypes.

    Raises:
        InputError: they do not.
    """
    if method.sends is not Sends.PROTOTYPES:
        raise InputError(
            f"server {server.name} answers with prototypes, and clients of method {method.name} send none; take a "
            "method such as fedproto, or server: honest"
        )


def instead(payload: ByClass, told_Cd: Float[np.ndarray, "C d"]) -> Prototypes:
    """Return a message with made-up vectors for the same classes, in the type that was sent."""
    real = payload.prototypes()
    return Prototypes(
        vectors=told_Cd[real.labels].astype(real.vectors.dtype), labels=real.labels, counts=real.counts
    )


def divided(state: State) -> tuple[State, State]:
    """Return the method's part of a state, and the server's own."""
    theirs = {name: value for name, value in state.items() if not name.startswith(_OWN)}
    own = {name.removeprefix(_OWN): value for name, value in state.items() if name.startswith(_OWN)}
    return theirs, own


def united(theirs: State, own: State) -> State:
    """Return one state that :func:`divided` takes apart again."""
    return theirs | {_OWN + name: value for name, value in own.items()}
