"""Methods whose clients send trained parameters, and whose server takes their mean."""

from abc import abstractmethod
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

HEAD, ADAPTER, TRANSFORM = "head.", "adapter.", "transform."
KEEP_MAPS = "take method fedavg_head, which keeps maps personal"


class AbstractAverageOfWeights(AbstractMethod):
    """Federated averaging of some of the parameters; the rest stay with the client.

    Every client sends its parameters as they stand at the beginning of a round, so what is sent in round t (from 1)
    went through t - 1 rounds of training, and the first message is the same of all. The server answers with the mean;
    each client puts it in the place of its own and trains on, with cross-entropy.

    The mean is not weighted by record counts: exact counts would be a second release. An optimiser keeps its memory
    between rounds. Of the defenses, ``dphead`` protects weights, ``none`` sends them as they are, and any other is
    refused.
    """

    sends: ClassVar[Sends] = Sends.WEIGHTS
    serves_newcomers: ClassVar[bool] = True
    way_out: ClassVar[str]
    """How clients whose maps have no mean are trained with this method, or with which other."""

    @property
    @abstractmethod
    def averaged(self) -> tuple[str, ...]:
        """Return what the names of parameters that are sent begin with."""

    def sends_weight(self, name: str) -> bool:
        return name.startswith(self.averaged)

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {}

    def refuse_unusable(self, uploads: Mapping[int, Update]) -> None:
        refuse_different({client: sent.named for client, sent in uploads.items()}, self.way_out)

    def merge(self, server: State, uploads: Mapping[int, Update]) -> State:
        self.refuse_unusable(uploads)
        sent = [uploads[client].named for client in sorted(uploads)]
        return {
            name: np.stack([one[name] for one in sent]).mean(0, dtype=np.float64).astype(np.float32)
            for name in sent[0]
        }

    def shared(self, server: State) -> State:
        return server

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
        """Return the scores of what arrived, with the client's own parameters where nothing did."""
        arrived = {name: down[name] if self.sends_weight(name) else p for name, p in params.items()}
        return network.logits(arrived, network.embed(arrived, x))


class AbstractAverageOfModel(AbstractAverageOfWeights):
    """Federated averaging of all that is trained: the map after the frozen encoder, and the head."""

    way_out: ClassVar[str] = KEEP_MAPS

    @property
    def averaged(self) -> tuple[str, ...]:
        return (HEAD, ADAPTER, TRANSFORM)


class AbstractTestedAverage(AbstractAverageOfWeights):
    """Federated averaging that is tested with the mean that arrived in a round, or with what was trained from it."""

    personal: bool = Field(
        default=False,
        description="classify by the client's own parameters after training, not by the mean it got",
    )

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        if self.personal:
            return AbstractMethod.logits(self, network, params, x, down, own)
        return super().logits(network, params, x, down, own)


def refuse_different(named: Mapping[int, Mapping[str, np.ndarray]], way_out_of_maps: str) -> None:
    """Raise if two clients' parameters have no mean; heads come first, since leaving out adapters is no help then."""
    for part, way_out in (
        (HEAD, "give all clients heads of one shape (model.hidden), or use a method that sends prototypes"),
        (ADAPTER, f"give all clients adapters of one shape, or {way_out_of_maps}"),
        (TRANSFORM, f"give all clients one model.transform, or {way_out_of_maps}"),
    ):
        shapes = {m: {n: a.shape for n, a in sent.items() if n.startswith(part)} for m, sent in named.items()}
        first, *others = sorted(shapes)
        odd = next((m for m in others if shapes[m] != shapes[first]), None)
        if odd is not None:
            raise InputError(
                f"client {odd} sent {part}* of other names or shapes than client {first}, and there is no mean of "
                f"them; {way_out}."
            )
