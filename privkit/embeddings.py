"""What a client holds just before a release: one private vector per record."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import DependsOn
from privkit.errors import InputError


@dataclass(frozen=True, eq=False, kw_only=True)
class Embeddings:
    """Labelled vectors of one client's records.

    Attributes:
        vectors: shape [N, d].
        labels: class of each, shape [N].
        encoder: what the map from record to vector was computed from.
        statistics: what the client's own model says of each record, as its method names it, shape [N, q]; ``None``
            where the method says nothing. It depends on private state, whatever the encoder does.
    """

    vectors: Float64[np.ndarray, "N d"]
    labels: Int64[np.ndarray, " N"]
    encoder: DependsOn
    statistics: Float64[np.ndarray, "N q"] | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.vectors).all():
            row = int(np.argwhere(~np.isfinite(self.vectors))[0, 0])
            raise InputError(f"embedding {row} is not finite; drop that record.")
        if self.statistics is not None and not np.isfinite(self.statistics).all():
            row = int(np.argwhere(~np.isfinite(self.statistics))[0, 0])
            raise InputError(f"a statistic of record {row} is not finite; drop that record.")

    def with_vectors(self, vectors: np.ndarray) -> "Embeddings":
        """Return the same records with other vectors."""
        return replace(self, vectors=vectors)

    def where(self, keep_N: np.ndarray) -> "Embeddings":
        """Return the records that a boolean mask of shape [N] keeps."""
        statistics = None if self.statistics is None else self.statistics[keep_N]
        return replace(self, vectors=self.vectors[keep_N], labels=self.labels[keep_N], statistics=statistics)

    def with_records(self, vectors: np.ndarray, labels: np.ndarray) -> "Embeddings":
        """Return these embeddings with some more records at the end; no model says anything of these: zeros."""
        more = None
        if self.statistics is not None:
            more = np.concatenate([self.statistics, np.zeros((len(labels), self.statistics.shape[1]))])
        return replace(
            self,
            vectors=np.concatenate([self.vectors, vectors]),
            labels=np.concatenate([self.labels, labels]),
            statistics=more,
        )
