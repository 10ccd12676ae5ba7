"""FedGH (Yi et al., 2023): the server trains one head on the clients' class means, and all take it as theirs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._averages import pooled
from privkit.methods._base import AbstractPrototypeMethod, State, cross_entropy
from privkit.methods._down import Down
from privkit.methods._server_training import ServerTraining, trained
from privkit.network import Network
from privkit.noise import Purpose, keyed
from privkit.personal import PersonalModel
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

_HEAD = ("head.weight", "head.bias")


class GhTraining(ServerTraining):
    """Server training as in HtFLlib; PFLlib has learning_rate 1.0 and one pass."""

    learning_rate: float = Field(default=0.01, gt=0, description="largest step size")
    batch_size: int = Field(default=10, ge=1, description="prototypes per step")
    epochs: int = Field(default=100, ge=1, description="passes over the round's prototypes, at most")


class FedGh(AbstractPrototypeMethod):
    """A global head that is trained on (prototype, class) pairs with cross-entropy, and goes on from round to round.

    Clients put it in the place of their own and train everything on. Its layer is one linear map, as every client's
    must be. A round is tested with what the client trained. Prototypes are of the embeddings before a round's training.
    """

    citation: ClassVar[str] = "fedgh"

    server: GhTraining = Field(
        default_factory=GhTraining, description="training of the global head on the server"
    )

    def replaces(self, name: str) -> bool:
        return name in _HEAD

    def refuse_model(self, model: PersonalModel) -> None:
        if model.hidden or model.temperature is not None:
            raise ValueError(
                "method fedgh trains a head of one linear layer on the server; leave out model.hidden and "
                "model.temperature"
            )

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        """Return the head that all clients begin with, where it is random."""
        head = Network(PersonalModel()).start(dim=dim, num_classes=num_classes, seed=seed)
        return {**head, "seed": np.array(seed), "round": np.array(0)}

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        import torch

        sent, round = pooled(uploads), int(server["round"]) + 1
        p, y = torch.tensor(sent.vectors, dtype=torch.float32), torch.tensor(sent.labels)

        def loss(head: "Mapping[str, Tensor]", chosen: "Tensor") -> "Tensor":
            logits = p[chosen] @ head["head.weight"] + head["head.bias"]
            return torch.nn.functional.cross_entropy(logits, y[chosen])

        head = trained(
            self.server,
            {name: server[name] for name in _HEAD},
            loss,
            rows=len(y),
            rng=keyed(int(server["seed"]), Purpose.SERVER, round=round),
        )
        return {**server, **head, "round": np.array(round)}

    def shared(self, server: State) -> State:
        return {name: server[name] for name in _HEAD}

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        return cross_entropy(network.logits(params, u_GBd), batch)
