"""FedAvg (McMahan et al., 2017) of the head: clients send the trained head itself, and the server averages."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.methods._base import AbstractMethod
from privkit.methods._down import Down
from privkit.methods._weights import ADAPTER, HEAD, AbstractAverageOfWeights
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class FedAvgHead(AbstractAverageOfWeights):
    """Federated averaging of the head, so that attacks on parameters have something real to read.

    A round's test uses the mean that arrived in it, or with ``personal`` the head that was trained from it. McMahan et
    al. weigh the mean by record counts, and it is not so here.
    """

    citation: ClassVar[str] = "fedavg"
    way_out: ClassVar[str] = "set method.adapters to false"

    adapters: bool = Field(default=False, description="send adapters besides the head, where there are any")
    personal: bool = Field(
        default=False,
        description="classify by the client's own parameters after training, not by the mean it got",
    )

    @property
    def averaged(self) -> tuple[str, ...]:
        return (HEAD, ADAPTER) if self.adapters else (HEAD,)

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
