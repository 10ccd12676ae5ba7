"""FedTGP (Zhang et al., 2024): the server trains global prototypes that are apart from one another by a margin."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from privkit.batch import Batch
from privkit.methods._averages import class_averages, pooled
from privkit.methods._base import AbstractPrototypeMethod, State, cross_entropy
from privkit.methods._down import Down
from privkit.methods._pull import distance_to_own, nearness
from privkit.methods._server_training import ServerTraining, trained
from privkit.network import Network, uniform
from privkit.noise import Purpose, keyed
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor

_NET = ("table", "first.weight", "first.bias", "second.weight", "second.bias")


class TgpTraining(ServerTraining):
    """Server training as in the VPDR paper's code; the original has learning_rate 0.01 and batch_size 10."""

    batch_size: int = Field(default=256, ge=1, description="prototypes per step")
    epochs: int = Field(default=100, ge=1, description="passes over the round's prototypes, at most")


class FedTgp(AbstractPrototypeMethod):
    r"""Trainable global prototypes with adaptive-margin-enhanced contrastive learning.

    The server keeps a network from round to round: one trainable vector per class, a linear layer with a ReLU and a
    linear layer, all of width d. What it gives for each class is that class's global prototype g_c, and all that
    clients get. Each round it is trained on the clients' prototypes p of classes y to make small

    ``-log softmax_c( -(|p - g_c| + delta [c = y]) )_y,  delta = min(max_c min_{c' != c} |m_c - m_c'|, margin)``

    where m_c are the averages of the classes that were sent. Classes that nobody sent are among the c of the softmax,
    as in the original code.

    A client's loss is cross-entropy plus ``pull`` times the mean squared distance to the global prototype of a record's
    class; one that nobody holds pulls nothing. FedTGP's authors classify by the nearest global prototype, the VPDR
    paper by the head; both are here. Trained parameters of clients stay with them, as in the original.
    """

    citation: ClassVar[str] = "fedtgp"

    pull: float = Field(
        default=1.0, ge=0, description="lambda, weight of the prototype loss; the original's script has 10"
    )
    margin: float = Field(
        default=100.0, gt=0, description="largest margin between prototypes, in embedding units"
    )
    predict: Literal["head", "prototype"] = Field(
        default="head", description="classify by the local head, or by the nearest global prototype"
    )
    server: TgpTraining = Field(
        default_factory=TgpTraining, description="training of the global prototypes on the server"
    )

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        rng = keyed(seed, Purpose.SERVER)
        return {
            "table": rng.standard_normal((num_classes, dim), dtype=np.float32),
            "first.weight": uniform(rng, dim, dim),
            "first.bias": uniform(rng, dim, 1).ravel(),
            "second.weight": uniform(rng, dim, dim),
            "second.bias": uniform(rng, dim, 1).ravel(),
            "prototypes": np.zeros((num_classes, dim), dtype=np.float32),
            "holders": np.zeros(num_classes, dtype=np.int64),
            "seed": np.array(seed),
            "round": np.array(0),
        }

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        import torch

        num_classes, dim = server["prototypes"].shape
        mean, holders = class_averages(uploads, num_classes=num_classes, dim=dim)
        sent = pooled(uploads)
        p, y = torch.tensor(sent.vectors, dtype=torch.float32), torch.tensor(sent.labels)
        delta = min(_widest_gap(mean[holders > 0]), self.margin)

        def loss(net: "Mapping[str, Tensor]", chosen: "Tensor") -> "Tensor":
            return apart(p[chosen], y[chosen], _prototypes(net), margin=delta)

        round = int(server["round"]) + 1
        net = trained(
            self.server,
            {name: server[name] for name in _NET},
            loss,
            rows=len(y),
            rng=keyed(int(server["seed"]), Purpose.SERVER, round=round),
        )
        prototypes = _prototypes({name: torch.from_numpy(array) for name, array in net.items()}).numpy()
        return {**server, **net, "prototypes": prototypes, "holders": holders, "round": np.array(round)}

    def shared(self, server: State) -> State:
        return {"prototypes": server["prototypes"], "present": server["holders"] > 0}

    def loss(
        self, network: Network, params: "dict[str, Tensor]", u_GBd: "Tensor", batch: Batch, down: Down
    ) -> "Tensor":
        base = cross_entropy(network.logits(params, u_GBd), batch)
        return base + self.pull * distance_to_own(u_GBd, batch, down)

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        u_GNd = network.embed(params, x)
        return network.logits(params, u_GNd) if self.predict == "head" else nearness(u_GNd, down)


def _prototypes(net: "Mapping[str, Tensor]") -> "Tensor":
    """Return what the server's network gives for each class, shape [C, d]."""
    hidden = (net["table"] @ net["first.weight"] + net["first.bias"]).relu()
    return hidden @ net["second.weight"] + net["second.bias"]


def apart(p_Bd: "Tensor", y_B: "Tensor", prototypes_Cd: "Tensor", *, margin: float) -> "Tensor":
    """Return the mean cross-entropy over minus distances, those to the own class longer by a margin; a scalar."""
    from torch.nn.functional import cross_entropy, one_hot

    squares_BC = (
        p_Bd.square().sum(1, keepdim=True) + prototypes_Cd.square().sum(1) - 2 * p_Bd @ prototypes_Cd.T
    )
    # rounding may leave less than nothing, and a root has no slope at 0
    distance_BC = squares_BC.clamp(min=1e-12).sqrt()
    own_BC = one_hot(y_B, len(prototypes_Cd)).to(distance_BC.dtype)
    return cross_entropy(-(distance_BC + margin * own_BC), y_B)


def _widest_gap(mean_Kd: np.ndarray) -> float:
    """Return the largest distance from a class average to the nearest other one; infinite without another."""
    from scipy.spatial.distance import cdist

    if len(mean_Kd) < 2:
        return np.inf
    distance_KK = cdist(mean_Kd, mean_Kd)
    np.fill_diagonal(distance_KK, np.inf)
    return float(distance_KK.min(1).max())
