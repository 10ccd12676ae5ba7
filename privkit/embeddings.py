"""What a client holds just before a release: one private vector per record."""

from dataclasses import dataclass

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
    """

    vectors: Float64[np.ndarray, "N d"]
    labels: Int64[np.ndarray, " N"]
    encoder: DependsOn

    def __post_init__(self) -> None:
        if not np.isfinite(self.vectors).all():
            row = int(np.argwhere(~np.isfinite(self.vectors))[0, 0])
            raise InputError(f"embedding {row} is not finite; drop that record.")

    def with_vectors(self, vectors: np.ndarray) -> "Embeddings":
        """Return the same records with other vectors."""
        return Embeddings(vectors=vectors, labels=self.labels, encoder=self.encoder)

    def where(self, keep_N: np.ndarray) -> "Embeddings":
        """Return the records that a boolean mask of shape [N] keeps."""
        return Embeddings(vectors=self.vectors[keep_N], labels=self.labels[keep_N], encoder=self.encoder)

    def with_records(self, vectors: np.ndarray, labels: np.ndarray) -> "Embeddings":
        """Return these embeddings with some more records at the end."""
        return Embeddings(
            vectors=np.concatenate([self.vectors, vectors]),
            labels=np.concatenate([self.labels, labels]),
            encoder=self.encoder,
        )
