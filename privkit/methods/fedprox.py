r"""FedProx (Li et al., 2020): FedAvg whose clients stay near to what they got.

The loss is cross-entropy plus ``(mu / 2) |w - w_t|^2``, where ``w_t`` is the mean that arrived in the round (Eq. 2).
"""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.batch import Batch
from privkit.methods._down import Down
from privkit.methods._proximal import half_square
from privkit.methods.fedavg import FedAvg
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor


class FedProx(FedAvg):
    """FedAvg of the whole trained model with a proximal term.

    The default of mu is that of the FPL paper's code. With mu 0, which is PFLlib's default, this is FedAvg. The paper's
    clients that do less work than others are not reproduced.
    """

    citation: ClassVar[str] = "fedprox"

    mu: float = Field(default=0.01, ge=0, description="weight of half the squared distance to what arrived")

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        base = super().loss(network, params, u_GBd, batch, down)
        return base + self.mu * half_square(params, down) if self.mu else base
