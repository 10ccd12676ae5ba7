"""Local training and nothing else: the control that every federated method has to beat."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod, State, cross_entropy
from privkit.personal import PersonalModel
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor


class LocalOnly(AbstractMethod):
    """Every client trains alone, on cross-entropy, and sends nothing."""

    uploads: ClassVar[bool] = False

    def start(self, *, dim: int, num_classes: int) -> State:
        return {}

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        return server

    def down(self, server: State, client: int) -> State:
        return {}

    def loss(
        self,
        model: PersonalModel,
        params: "dict[str, Tensor]",
        u_GBd: "Tensor",
        batch: Batch,
        down: "dict[str, Tensor]",
    ) -> "Tensor":
        return cross_entropy(model.logits(params, u_GBd), batch)

    def logits(
        self,
        model: PersonalModel,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: "dict[str, Tensor]",
    ) -> "Tensor":
        return model.logits(params, model.embed(params, x))
