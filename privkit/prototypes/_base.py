"""How a client's records become prototypes: which records of a class are averaged together."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import DependsOn
from privkit.embeddings import Embeddings
from privkit.plug import Plugin
from privkit.release import ByClass, Prototypes


class Plain(NamedTuple):
    """What leaves a client where nothing is hidden, and its vectors before they were rounded, shape [P, d]."""

    payload: ByClass
    vectors: Float64[np.ndarray, "P d"]


class AbstractPrototypes(Plugin):
    """Divides the records of each class into clusters, each of which is averaged into one prototype."""

    @property
    @abstractmethod
    def assignment(self) -> DependsOn:
        """Return what decides which records are averaged together.

        Anything but public data voids the sensitivity ``2R / n`` of a prototype: replacing one record can move
        others to another cluster, and change how many prototypes there are.
        """

    @abstractmethod
    def assign(
        self, vectors_Nd: Float64[np.ndarray, "N d"], labels_N: Int64[np.ndarray, " N"]
    ) -> Int64[np.ndarray, " N"]:
        """Return the cluster of each record within its class, from 0 without gaps.

        The same for the same records in the same order.

        Args:
            vectors_Nd: clipped embeddings of one client's records.
            labels_N: class of each.
        """

    def plain(
        self,
        embeddings: Embeddings,
        labels_P: Int64[np.ndarray, " P"],
        counts_P: Int64[np.ndarray, " P"],
        means_Pd: Float64[np.ndarray, "P d"],
    ) -> Plain:
        """Return what leaves a client where nothing is hidden; by default, the mean of each cluster and its size.

        Args:
            embeddings: of the client, those of canaries among them.
            labels_P: class of each cluster, ascending.
            counts_P: records in each.
            means_Pd: mean of each.
        """
        payload = Prototypes(vectors=means_Pd.astype("float32"), labels=labels_P, counts=counts_P)
        return Plain(payload, means_Pd)
