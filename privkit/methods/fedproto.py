"""FedProto (Tan et al., 2022): clients share class means; each pulls its embeddings to the global ones."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._base import AbstractPrototypeMethod, State, cross_entropy
from privkit.methods._down import Down
from privkit.network import Network
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor


class FedProto(AbstractPrototypeMethod):
    """Federated prototype learning.

    The server averages each class over the clients that hold it, unweighted: exact record counts would
    be a second release. Noisy ones that were paid for weigh the average instead. The loss is cross-entropy
    plus ``pull`` times the mean squared distance of an embedding to the global prototype of its own class; a
    class nobody holds pulls nothing.
    """

    citation: ClassVar[str] = "fedproto"

    pull: float = Field(default=0.1, ge=0, description="lambda, weight of the prototype loss")
    predict: Literal["head", "prototype"] = Field(
        default="head", description="classify by the local head, or by the nearest global prototype"
    )

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {
            "prototypes": np.zeros((num_classes, dim), dtype=np.float32),
            "holders": np.zeros(num_classes, dtype=np.int64),
        }

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        total = np.zeros(server["prototypes"].shape)
        holders = np.zeros_like(server["holders"])
        shares = np.zeros(len(holders))
        for sent in uploads.values():
            numerators, denominators = sent.shares()
            np.add.at(total, sent.labels, numerators)
            np.add.at(shares, sent.labels, denominators)
            np.add.at(holders, sent.labels, 1)
        # noisy totals may add up to nothing or less; a prototype counts at least one record of each client
        mean = total / np.maximum(shares, np.maximum(holders, 1))[:, None]
        return {"prototypes": mean.astype(np.float32), "holders": holders}

    def shared(self, server: State) -> State:
        return {"prototypes": server["prototypes"], "present": server["holders"] > 0}

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        base = cross_entropy(network.logits(params, u_GBd), batch)
        index = batch.y.unsqueeze(-1).expand_as(u_GBd)
        distance_GB = (u_GBd - down["prototypes"].gather(1, index)).square().mean(-1)
        present_GB = down["present"].gather(1, batch.y)
        return base + self.pull * (distance_GB * present_GB * batch.weight).sum(-1)

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        import torch

        u_GNd = network.embed(params, x)
        if self.predict == "head":
            return network.logits(params, u_GNd)
        distance_GNC = torch.cdist(u_GNd, down["prototypes"])
        return (-distance_GNC).masked_fill(~down["present"].unsqueeze(1), float("-inf"))
