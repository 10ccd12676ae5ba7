"""FedAvg (McMahan et al., 2017): clients send all that they train, and the server averages."""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.methods._base import AbstractMethod
from privkit.methods._down import Down
from privkit.methods._weights import ADAPTER, HEAD, TRANSFORM, AbstractAverageOfWeights
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class FedAvg(AbstractAverageOfWeights):
    """Federated averaging of the whole trained model: the map after the frozen encoder, and the head.

    A round's test uses the mean that arrived in it, or with ``personal`` what the client trained from it. McMahan et
    al. weigh the mean by record counts, and it is not so here.
    """

    citation: ClassVar[str] = "fedavg"
    way_out: ClassVar[str] = "take method fedavg_head, which keeps maps personal"

    personal: bool = Field(
        default=False,
        description="classify by the client's own parameters after training, not by the mean it got",
    )

    @property
    def averaged(self) -> tuple[str, ...]:
        return (HEAD, ADAPTER, TRANSFORM)

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
