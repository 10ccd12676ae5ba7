"""FINCH (Sarfraz et al., 2019): clusters of first neighbours, as many as the records of a class suggest.

What FedPLVM's clients share, and how the servers of FPL and FedPLVM group what arrives. Checked against the authors'
code. Their switch ``ensure_early_exit``, which VPDR's code leaves on and FPL's and FedPLVM's turn off, changes nothing
there: what it sets to 0 in a sparse graph still counts as an edge. Here it does what it is described to do.
"""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import Field

from accountant.contract import DependsOn
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes._by_class import divided_by_class
from privkit.prototypes._first_neighbours import partitions


class Finch(AbstractPrototypes):
    """Each record of a class joins its nearest one in direction; clusters join likewise, as long as they do.

    One record decides how many prototypes are sent, which no noise on them hides: see ``privkit explain E6``. A cluster
    may be two records.
    """

    citation: ClassVar[str] = "sarfraz2019"

    partition: Literal["last", "first"] = Field(
        default="last",
        description="which partition: last, the coarsest, which is one cluster only if the first is; or first, the "
        "finest, clusters of a few records each",
    )
    early_exit: bool = Field(
        default=False,
        description="never join clusters that are further apart than any record is from its first neighbour; the "
        "published code's switch of that name has no effect",
    )

    @property
    def assignment(self) -> DependsOn:
        return DependsOn.PRIVATE_STATE

    def assign(
        self, vectors_Nd: Float64[np.ndarray, "N d"], labels_N: Int64[np.ndarray, " N"]
    ) -> Int64[np.ndarray, " N"]:
        return divided_by_class(vectors_Nd, labels_N, lambda vectors_nd, label: self.clusters(vectors_nd))

    def clusters(self, vectors_nd: Float64[np.ndarray, "n d"]) -> Int64[np.ndarray, " n"]:
        """Return the cluster of each vector, from 0 without gaps; all of them are taken as one class, at least one."""
        found = partitions(vectors_nd, early_exit=self.early_exit)
        return found[-1] if self.partition == "last" else found[0]
