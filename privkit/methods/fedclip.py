"""FedCLIP (Lu et al., 2023): the head is fixed, and the map in front of it is averaged."""

from typing import TYPE_CHECKING, ClassVar

from privkit.batch import Batch
from privkit.methods._base import cross_entropy
from privkit.methods._down import Down
from privkit.methods._weights import ADAPTER, HEAD, TRANSFORM, AbstractAverageOfWeights
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class FedClip(AbstractAverageOfWeights):
    """A shared map (``transform: gate``) in front of class vectors that stay as they begin (``first_head``).

    As FedOT, it is tested on what arrived. Not reproduced: the loss that compares the images of a batch with its
    captions; here each record is compared with all classes, by cross-entropy. The original's vectors are those of a
    text encoder that belongs to the image encoder.
    """

    citation: ClassVar[str] = "fedclip"
    tests_arrivals: ClassVar[bool] = True
    way_out: ClassVar[str] = "take method fedot, which keeps maps personal"

    @property
    def averaged(self) -> tuple[str, ...]:
        return (ADAPTER, TRANSFORM)

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        fixed = {name: p.detach() if name.startswith(HEAD) else p for name, p in params.items()}
        return cross_entropy(network.logits(fixed, u_GBd), batch)
