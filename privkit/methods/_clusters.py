"""Methods whose server groups the prototypes that arrive, class by class: FPL and FedPLVM."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import Field

from privkit.methods._averages import pooled
from privkit.methods._base import AbstractPrototypeMethod, State
from privkit.methods._down import Down
from privkit.methods._infonce import cosines, largest_by_class
from privkit.network import Network
from privkit.prototypes._first_neighbours import means
from privkit.prototypes.finch import Finch
from privkit.release import ByClass

if TYPE_CHECKING:
    from torch import Tensor


class Clusters(NamedTuple):
    """Global prototypes: the centres of the clusters of each class.

    Attributes:
        centres: shape [K, d].
        labels: class of each, ascending, shape [K].
    """

    centres: Float64[np.ndarray, "K d"]
    labels: Int64[np.ndarray, " K"]


def clustered(uploads: Mapping[int, ByClass], rule: Finch) -> Clusters:
    """Return the clusters of the prototypes of each class, all clients' together, each counted once.

    How many records are behind a prototype is not used: exact counts would be a second release.

    Args:
        uploads: what arrived, by client; at least one prototype in all.
        rule: how the prototypes of a class are divided.
    """
    sent = pooled(uploads)
    vectors = sent.vectors.astype(np.float64)
    centres = {c: _centres(vectors[sent.labels == c], rule) for c in np.unique(sent.labels).tolist()}
    sizes = [len(found) for found in centres.values()]
    return Clusters(np.concatenate(list(centres.values())), np.repeat(list(centres), sizes))


def _centres(vectors_nd: Float64[np.ndarray, "n d"], rule: Finch) -> Float64[np.ndarray, "k d"]:
    return means(vectors_nd, rule.clusters(vectors_nd))


class AbstractClusteredMethod(AbstractPrototypeMethod):
    """A method whose clients get the centres of clusters of prototypes, any number of each class.

    The server's state: ``centres`` [K, d] with ``labels`` [K] (-1 for filler); the plain mean of each class's centres,
    ``prototypes`` [C, d]; and which classes anybody holds, ``present`` [C].
    """

    server: Finch = Field(
        default_factory=Finch, description="how the server groups the prototypes of a class that arrive"
    )
    temperature: float = Field(
        default=0.07, gt=0, description="tau, that similarities are divided by in the contrast"
    )
    predict: Literal["head", "prototype"] = Field(
        default="head", description="classify by the local head, or by the global prototype of largest cosine"
    )

    def start(self, *, dim: int, num_classes: int, seed: int) -> State:
        nothing = np.zeros((num_classes, dim), dtype=np.float32)
        return {
            "centres": nothing,
            "labels": np.full(num_classes, -1),
            "prototypes": nothing,
            "present": np.zeros(num_classes, dtype=bool),
        }

    def merge(self, server: State, uploads: Mapping[int, ByClass]) -> State:
        found = clustered(uploads, self.server)
        classes = len(server["present"])
        clusters_C = np.bincount(found.labels, minlength=classes)
        total_Cd = np.zeros((classes, found.centres.shape[1]))
        np.add.at(total_Cd, found.labels, found.centres)
        return {
            "centres": found.centres.astype(np.float32),
            "labels": found.labels,
            "prototypes": (total_Cd / np.maximum(clusters_C, 1)[:, None]).astype(np.float32),
            "present": clusters_C > 0,
        }

    def shared(self, server: State) -> State:
        return server

    def logits(
        self,
        network: Network,
        params: "dict[str, Tensor]",
        x: "Tensor",
        down: Down,
        own: "dict[str, Tensor]",
    ) -> "Tensor":
        u_GNd = network.embed(params, x)
        if self.predict == "head":
            return network.logits(params, u_GNd)
        similar_GNK = cosines(u_GNd, down["centres"])
        return largest_by_class(similar_GNK, down["labels"], num_classes=down["present"].shape[1])
