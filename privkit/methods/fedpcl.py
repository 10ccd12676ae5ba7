"""FedPCL (Tan et al., 2022b): embeddings are contrasted with the global prototypes, and with those of every client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._averages import class_averages
from privkit.methods._base import AbstractPrototypeMethod, State
from privkit.methods._down import Down
from privkit.methods._infonce import unit
from privkit.network import Network
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

    from privkit.methods._contrast import Peers


class FedPcl(AbstractPrototypeMethod):
    r"""Federated prototype-wise contrastive learning.

    The server averages each class over the clients that hold it, and forwards every client's own prototypes to all,
    classes that a client lacks filled with the average. The loss of an embedding u of class y is

    ``L_g + L_p,  L_g = -log softmax_c(cos(u, p_g^c) / tau)_y,  L_p = mean_i -log softmax_c(cos(u, p_i^c) / tau)_y``

    over the clients i, this one included, and the classes c that anybody holds; a record of a class that nobody holds
    counts 0. There is no cross-entropy on the head: without an adapter nothing is trained, and with DCR the head learns
    from its own teacher alone. A record gets the class of the nearest (by cosine) mean of the client's own training
    embeddings, which stay with the client and have no noise: a server could not repeat that prediction.

    What every client receives grows with the number of clients: M C d numbers.

    Not reproduced: the paper's fusion of several backbones, its projection and its supervised contrast of two views,
    and averages weighted by record counts, which would be a second release. Trained parameters stay with the client.
    """

    citation: ClassVar[str] = "fedpcl"

    temperature: float = Field(default=0.07, gt=0, description="tau, that cosines are divided by")
    peers: Literal["mean", "sum"] = Field(
        default="mean",
        description="average the loss over the clients' prototypes, or add it up, as the original code does",
    )

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        return {
            "prototypes": np.zeros((num_classes, dim), dtype=np.float32),
            "holders": np.zeros(num_classes, dtype=np.int64),
            "peers": np.zeros((0, num_classes, dim), dtype=np.float32),
        }

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        num_classes, dim = server["prototypes"].shape
        mean, holders = class_averages(uploads, num_classes=num_classes, dim=dim)
        prototypes = mean.astype(np.float32)
        peers = np.repeat(prototypes[None], len(uploads), axis=0)
        for filled, client in zip(peers, sorted(uploads), strict=True):
            own, held = class_averages({client: uploads[client]}, num_classes=num_classes, dim=dim)
            filled[held > 0] = own[held > 0]
        return {"prototypes": prototypes, "holders": holders, "peers": peers}

    def shared(self, server: State) -> State:
        return {
            "prototypes": server["prototypes"],
            "present": server["holders"] > 0,
            "peers": server["peers"],
            "sent": np.ones(len(server["peers"]), dtype=bool),
        }

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        from privkit.methods._contrast import contrast

        average, peers = _both(down)
        to_average_GB = contrast(u_GBd, batch.y, average, temperature=self.temperature)
        to_peers_GB = contrast(u_GBd, batch.y, peers, temperature=self.temperature)
        if self.peers == "mean":
            to_peers_GB = to_peers_GB / peers.sent_RM.sum(1).clamp(min=1)[peers.run_G].unsqueeze(-1)
        return ((to_average_GB + to_peers_GB) * batch.weight).sum(-1)

    def recall(self, z_GNd: "Tensor", y_GN: "Tensor", *, num_classes: int) -> "dict[str, Tensor]":
        import torch

        classes_C1 = torch.arange(num_classes, device=y_GN.device).unsqueeze(-1)
        member_GCN = (y_GN.unsqueeze(1) == classes_C1).to(z_GNd.dtype)
        counts_GC = member_GCN.sum(-1)
        return {"means": member_GCN @ z_GNd / counts_GC.clamp(min=1).unsqueeze(-1), "held": counts_GC > 0}

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        u_GNd, means_GCd = unit(network.embed(params, x)), unit(own["means"])
        cosine_GNC = u_GNd @ means_GCd.to(u_GNd.dtype).mT
        return cosine_GNC.masked_fill(~own["held"].unsqueeze(1), float("-inf"))


def _both(down: Down) -> "tuple[Peers, Peers]":
    """Return the average as a single peer, and the peers, each as it was held: once per run, or once per client."""
    import torch

    from privkit.methods._contrast import Peers

    got, run_G = down.shared, down.run_G
    if down.each:
        # a server that tells clients apart: nothing is shared then
        got = {name: down[name] for name in ("prototypes", "present", "peers", "sent")}
        run_G = torch.arange(len(run_G), device=run_G.device)
    one = torch.ones_like(got["present"][:, :1])
    average = Peers(
        vectors_RMCd=got["prototypes"].unsqueeze(1), present_RC=got["present"], sent_RM=one, run_G=run_G
    )
    peers = Peers(vectors_RMCd=got["peers"], present_RC=got["present"], sent_RM=got["sent"], run_G=run_G)
    return average, peers
