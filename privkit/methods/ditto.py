r"""Ditto (Li et al., 2021): a personal model beside the global one, near to it.

The global model ``w`` is trained and averaged as in FedAvg. The personal one ``v`` is trained on cross-entropy plus
``(lam / 2) |v - w_t|^2``, where ``w_t`` is the mean that arrived in the round (Algorithm 1, Eq. 1).
"""

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod, State
from privkit.methods._down import Down
from privkit.methods._phases import Phase
from privkit.methods._proximal import half_square
from privkit.methods._weights import AbstractAverageOfModel
from privkit.network import Network

if TYPE_CHECKING:
    from torch import Tensor

PERSONAL = "personal."
"""What the names of the personal model's parameters begin with."""


class Ditto(AbstractAverageOfModel):
    """FedAvg, and a personal model of each client that never leaves it; the personal one classifies.

    The personal model is trained before the global one, against the mean as it was received; both see the same
    mini-batches, and each has an optimiser of its own. With ``pull`` 0 it is local training alone.
    """

    citation: ClassVar[str] = "ditto"
    serves_newcomers: ClassVar[bool] = False

    pull: float = Field(
        default=1.0,
        ge=0,
        description="lambda, weight of half the squared distance of the personal model to the mean that arrived; "
        "the paper has 0.05 to 2",
    )
    personal_epochs: int = Field(
        default=1, ge=1, description="passes that train the personal model, per round"
    )

    def first(self, start: State, *, seed: int) -> State:
        return start | {f"{PERSONAL}{name}": array.copy() for name, array in start.items()}

    @property
    def phases(self) -> tuple[Phase, ...]:
        personal = Phase(epochs=self.personal_epochs, loss=self.personal_loss, model=PERSONAL)
        shared = Phase(epochs=self.training.epochs, loss=self.loss, trained=self.averaged)
        return (personal, shared)

    def personal_loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        """Return each client's loss of its personal model, shape [G]."""
        base = self.loss(network, params, u_GBd, batch, down)
        return base + self.pull * half_square(params, down) if self.pull else base

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        personal = self.phases[0].view(params)
        return AbstractMethod.logits(self, network, personal, x, down, own)
