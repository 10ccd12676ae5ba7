"""FedAvg (McMahan et al., 2017) of the head: clients send the trained head itself, and the server averages."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod, Sends, State, cross_entropy
from privkit.methods._down import Down
from privkit.network import Network
from privkit.release import Update

if TYPE_CHECKING:
    from torch import Tensor

_HEAD, _ADAPTER = "head.", "adapter."


class FedAvgHead(AbstractMethod):
    """Federated averaging of the head, so that attacks on parameters have something real to read.

    Every client sends its head as it stands at the beginning of a round, so what is sent in round t (from 1) went
    through t - 1 rounds of training, and the first message is the initial head, the same for all. The server answers
    with the mean; each client puts it in the place of its own head and trains on, with cross-entropy. A round's test
    uses the mean that arrived in it, or with ``personal`` the head that was trained from it.

    The mean is not weighted by record counts, as McMahan et al. do: exact counts would be a second release. AdamW keeps
    its memory between rounds. No defense protects weights yet: any but ``none`` is refused.
    """

    citation: ClassVar[str] = "fedavg"
    sends: ClassVar[Sends] = Sends.WEIGHTS

    adapters: bool = Field(default=False, description="send adapters besides the head, where there are any")
    personal: bool = Field(
        default=False,
        description="classify by the client's own parameters after training, not by the mean it got",
    )

    def sends_weight(self, name: str) -> bool:
        return name.startswith((_HEAD, _ADAPTER) if self.adapters else _HEAD)

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {}

    def refuse_unusable(self, uploads: Mapping[int, Update]) -> None:
        _refuse_different({client: sent.named for client, sent in uploads.items()})

    def merge(self, server: State, uploads: Mapping[int, Update]) -> State:
        self.refuse_unusable(uploads)
        sent = [uploads[client].named for client in sorted(uploads)]
        return {
            name: np.stack([one[name] for one in sent]).mean(0, dtype=np.float64).astype(np.float32)
            for name in sent[0]
        }

    def shared(self, server: State) -> State:
        return server

    def receive(self, params: "dict[str, Tensor]", down: Down) -> None:
        for name, p in params.items():
            if self.sends_weight(name):
                p.copy_(down[name])

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        return cross_entropy(network.logits(params, u_GBd), batch)

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        if not self.personal:
            params = {name: down[name] if self.sends_weight(name) else p for name, p in params.items()}
        return network.logits(params, network.embed(params, x))


def _refuse_different(named: Mapping[int, Mapping[str, np.ndarray]]) -> None:
    """Raise if two clients' parameters have no mean; heads come first, since leaving out adapters is no help then."""
    for part, way_out in (
        (_HEAD, "give all clients heads of one shape (model.hidden), or use a method that sends prototypes"),
        (_ADAPTER, "give all clients adapters of one shape, or set method.adapters to false"),
    ):
        shapes = {m: {n: a.shape for n, a in sent.items() if n.startswith(part)} for m, sent in named.items()}
        first, *others = sorted(shapes)
        odd = next((m for m in others if shapes[m] != shapes[first]), None)
        if odd is not None:
            raise InputError(
                f"client {odd} sent {part}* of other names or shapes than client {first}, and there is no mean of "
                f"them; {way_out}."
            )
