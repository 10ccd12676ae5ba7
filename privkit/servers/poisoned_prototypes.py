r"""A malicious server of a prototype method: it steers every class to a point of its choice.

Whatever the method, clients pull their embeddings towards what the server says the prototypes are. This server
merges prototypes that it made up in place of those that were sent,

.. math:: P_c = \bar p_c + g \, (a_c - \bar p_c)

with the aim :math:`a_c` of class c and the mean :math:`\bar p_c` of what clients sent about it: feedback in proportion
to the error. The weight of the pull is the client's, but the length of the error is the server's, so a weak pull
is made up for by prototypes that lie far away.

Steering by what a federation sends back: Boenisch et al. (2023), Wen et al. (2022), who change weights; prototypes
are all that this server has to answer with. The feedback is ours.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from privkit.methods._averages import class_averages
from privkit.methods._base import AbstractMethod, State
from privkit.release import ByClass, Payload
from privkit.servers._base import AbstractServer
from privkit.servers._made_up import divided, instead, refuse_no_prototypes, united


class PoisonedPrototypes(AbstractServer):
    """Sends prototypes that steer the embeddings of every class to a point of the server's choice."""

    malicious: ClassVar[bool] = True
    citation: ClassVar[str] = "boenisch2023, wen2022"

    aim: Literal["anchored", "orthogonal", "origin"] = Field(
        default="anchored",
        description="anchored: where the class was in the first round, so that the encoder stays the one that was "
        "broadcast; orthogonal: mutually orthogonal points of the same length; origin: zero, which leaves of a record "
        "what sets it apart from its class",
    )
    gain: float = Field(
        default=1000.0,
        ge=1,
        description="g, in lengths of the error; 1 sends the aim itself, which hardly pulls",
    )

    def refuse_method(self, method: AbstractMethod) -> None:
        refuse_no_prototypes(self, method)

    def start(self, method: AbstractMethod, *, dim: int, num_classes: int, seed: int) -> State:
        nowhere = np.zeros((num_classes, dim))
        own = {
            "aim": nowhere,
            "aimed": np.zeros(num_classes, dtype=bool),
            "axes": _axes(num_classes, dim, seed),
        }
        return united(method.start(dim=dim, num_classes=num_classes, seed=seed), own)

    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        sent = {m: payload for m, payload in uploads.items() if isinstance(payload, ByClass)}
        theirs, own = divided(state)
        num_classes, dim = own["aim"].shape
        means_Cd, holders_C = class_averages(sent, num_classes=num_classes, dim=dim)
        held_C = holders_C > 0
        new_C = held_C & ~own["aimed"]
        aim_Cd = np.where(new_C[:, None], self._aims(means_Cd, own["axes"]), own["aim"])
        told_Cd = np.where(held_C[:, None], means_Cd + self.gain * (aim_Cd - means_Cd), aim_Cd)
        own = own | {"aim": aim_Cd, "aimed": own["aimed"] | held_C}
        made_up = {m: instead(payload, told_Cd) for m, payload in sent.items()}
        return united(method.merge(theirs, made_up), own)

    def _aims(
        self, means_Cd: Float64[np.ndarray, "C d"], axes_Cd: Float64[np.ndarray, "C d"]
    ) -> Float64[np.ndarray, "C d"]:
        match self.aim:
            case "anchored":
                return means_Cd
            case "orthogonal":
                return axes_Cd * np.linalg.norm(means_Cd, axis=1, keepdims=True)
            case "origin":
                return np.zeros_like(means_Cd)

    def shared(self, method: AbstractMethod, state: State) -> State:
        return method.shared(divided(state)[0])

    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        return method.down(divided(state)[0], client)


def _axes(num_classes: int, dim: int, seed: int) -> Float64[np.ndarray, "C d"]:
    """Return random unit vectors, mutually orthogonal as far as there are so many dimensions."""
    gaussian_dC = np.random.default_rng(seed).standard_normal((dim, num_classes))
    if num_classes > dim:
        return (gaussian_dC / np.linalg.norm(gaussian_dC, axis=0)).T
    return np.linalg.qr(gaussian_dC)[0].T
