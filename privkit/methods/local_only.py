"""Local training and nothing else: the control that every federated method has to beat."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod, Sends, State, cross_entropy
from privkit.methods._down import Down
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class LocalOnly(AbstractMethod):
    """Every client trains alone, on cross-entropy, and sends nothing."""

    sends: ClassVar[Sends] = Sends.NOTHING

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {}

    def merge(self, server: State, uploads: Mapping[int, Any]) -> State:
        return server

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        return cross_entropy(network.logits(params, u_GBd), batch)
