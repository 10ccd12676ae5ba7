r"""A malicious server of a prototype method: it stalls the training of its clients' encoders.

In the first two rounds every prototype is a point very far away, then its opposite,

.. math:: P_c^{(0)} = K e, \qquad P_c^{(1)} = -K e,

and from then on the server is honest. Clients train with an adaptive optimizer, whose step is the mean gradient over
the root of its mean square. The two kicks move an encoder by a few steps there and back, whatever K is; but they stay
in the mean square for as long as it remembers (1 / (1 - beta2): 1000 steps of AdamW), and until then no gradient of the
usual size moves the encoder any more. So all later releases are made with nearly the encoder that was broadcast,
which the server knows: each round tells it about the same function of the same records, and noise that is drawn anew
averages out. The head, which no prototype reaches, learns as usual.

Steering by what a federation sends back: Boenisch et al. (2023), Wen et al. (2022), who change weights. Stalling by
the optimizer's memory is ours.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from privkit.methods._base import AbstractMethod, State
from privkit.release import ByClass, Payload
from privkit.servers._base import AbstractServer
from privkit.servers._made_up import divided, instead, refuse_no_prototypes, united


class StallingPrototypes(AbstractServer):
    """Sends, twice, prototypes so far away that the clients' encoders hardly move afterwards."""

    malicious: ClassVar[bool] = True
    citation: ClassVar[str] = "boenisch2023, wen2022"

    distance: float = Field(
        default=1e6,
        gt=0,
        description="K, length of the two answers, in the units of the embedding; a method whose server trains on "
        "prototypes, such as mpft, diverges at so much",
    )

    def refuse_method(self, method: AbstractMethod) -> None:
        refuse_no_prototypes(self, method)

    def start(self, method: AbstractMethod, *, dim: int, num_classes: int, seed: int) -> State:
        direction_d = np.random.default_rng(seed).standard_normal(dim)
        own = {
            "away": np.tile(direction_d / np.linalg.norm(direction_d), (num_classes, 1)),
            "round": np.zeros((), dtype=np.int64),
        }
        return united(method.start(dim=dim, num_classes=num_classes, seed=seed), own)

    def merge(self, method: AbstractMethod, state: State, uploads: Mapping[int, Payload]) -> State:
        theirs, own = divided(state)
        round = int(own["round"])
        if round < 2:
            told_Cd = own["away"] * (self.distance if round == 0 else -self.distance)
            uploads = {m: instead(sent, told_Cd) for m, sent in uploads.items() if isinstance(sent, ByClass)}
        return united(method.merge(theirs, method.arrived(uploads)), own | {"round": np.array(round + 1)})

    def shared(self, method: AbstractMethod, state: State) -> State:
        return method.shared(divided(state)[0])

    def down(self, method: AbstractMethod, state: State, client: int) -> State:
        return method.down(divided(state)[0], client)
