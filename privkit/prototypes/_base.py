"""How a client's records become prototypes: which records of a class are averaged together."""

from abc import abstractmethod

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import DependsOn
from privkit.plug import Plugin


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
