"""What a client holds just before a release: one private vector per record."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import DependsOn


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

    def with_records(self, vectors: np.ndarray, labels: np.ndarray) -> "Embeddings":
        """Return these embeddings with some more records at the end."""
        return Embeddings(
            vectors=np.concatenate([self.vectors, vectors]),
            labels=np.concatenate([self.labels, labels]),
            encoder=self.encoder,
        )
