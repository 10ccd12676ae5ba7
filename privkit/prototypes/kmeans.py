"""k-means on the records of each class: what MPFT's clients share."""

import math
import warnings
from typing import ClassVar

import numpy as np
from jaxtyping import Float64, Int64
from pydantic import Field

from accountant.contract import DependsOn
from privkit.errors import InputError
from privkit.prototypes._base import AbstractPrototypes
from privkit.prototypes._by_class import divided_by_class

_SEED = 0
_ROUNDING = 1e-9  # .1 * 30 may be a little above 3


class KMeans(AbstractPrototypes):
    """Centres of k-means in Euclidean distance, by scikit-learn: k-means++ starts, Lloyd's iterations, one thread.

    One record can move many others to another centre: see ``privkit explain E5``. Equal records share a centre, so
    there may be fewer than were asked for.
    """

    citation: ClassVar[str] = "lloyd1982, arthur2007"

    ratio: float = Field(
        default=0.1,
        gt=0,
        le=1,
        description="centres per record of a class, rounded up; unused where clusters is set",
    )
    clusters: int | None = Field(
        default=None, ge=1, description="centres of every class, whatever its size; none takes ratio"
    )
    restarts: int = Field(
        default=1, ge=1, description="starts per class; the one with the least cost is kept"
    )

    @property
    def assignment(self) -> DependsOn:
        return DependsOn.PRIVATE_STATE

    def assign(
        self, vectors_Nd: Float64[np.ndarray, "N d"], labels_N: Int64[np.ndarray, " N"]
    ) -> Int64[np.ndarray, " N"]:
        from threadpoolctl import threadpool_limits

        # threads add up a centre's records in an order of their own
        with threadpool_limits(1):
            return divided_by_class(vectors_Nd, labels_N, self._divided)

    def _divided(self, vectors_nd: Float64[np.ndarray, "n d"], label: int) -> Int64[np.ndarray, " n"]:
        from sklearn.cluster import KMeans as Lloyd
        from sklearn.exceptions import ConvergenceWarning

        centres, restarts = self._wanted(len(vectors_nd), label), self.restarts
        lloyd = Lloyd(centres, n_init=restarts, random_state=_SEED)  # pyright: ignore[reportArgumentType]
        with warnings.catch_warnings():
            # equal records leave fewer centres than were asked for
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = lloyd.fit_predict(vectors_nd)
        return np.unique(found, return_inverse=True)[1].astype(np.int64)

    def _wanted(self, records: int, label: int) -> int:
        if self.clusters is None:
            return math.ceil(self.ratio * records - _ROUNDING)
        if self.clusters > records:
            raise InputError(
                f"class {label} of a client has {records} record{'s' * (records > 1)}, and clusters={self.clusters} "
                "centres are asked for: give it more records, lower clusters, or set ratio instead."
            )
        return self.clusters
