"""Another encoder behind a fixed random linear map, to an embedding size that one may choose."""

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32, UInt8
from pydantic import Field, field_serializer, field_validator

from privkit import plug
from privkit.models import _cache
from privkit.models._base import AbstractEncoder, Staged

if TYPE_CHECKING:
    from torch.nn import Linear, Module


class Projected(AbstractEncoder):
    """Vectors of another encoder times a matrix of independent N(0, 1 / output_dim) numbers.

    It keeps squared lengths in expectation (Johnson and Lindenstrauss, 1984). The VPDR paper puts a linear layer to 512
    numbers, random, frozen, and the same for all clients, between backbone and head; give clients different ``seed``
    values for embeddings in unrelated bases. That layer's entries are drawn as torch draws a new ``nn.Linear``, so its
    vectors are shorter by a constant factor, and it adds a constant vector.
    """

    encoder: AbstractEncoder = Field(description="the encoder whose vectors are projected")
    output_dim: int = Field(ge=1, le=65536, description="numbers per vector")
    seed: int = Field(default=0, ge=0, description="seed of the matrix")

    @field_validator("encoder", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        return value if isinstance(value, AbstractEncoder) else plug.build("privkit.models", value)

    @field_serializer("encoder")
    def _plain(self, encoder: AbstractEncoder) -> dict[str, Any]:
        return encoder.settings()

    @property
    def dim(self) -> int:
        """Return ``output_dim``."""
        return self.output_dim

    @property
    def trained_on(self) -> str:
        """Return what the other encoder was trained on; the matrix is trained on nothing."""
        return self.encoder.trained_on

    @property
    def fingerprint(self) -> str:
        """Return one sha256 for the other encoder's weights and the matrix."""
        both = self.encoder.fingerprint.encode() + self.matrix().tobytes()
        return hashlib.sha256(both).hexdigest()

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Return what the other encoder reads."""
        return self.encoder.image_shape

    def matrix(self) -> Float32[np.ndarray, "output_dim inner_dim"]:
        """Return the matrix; of every pair of sizes, a seed gives another one."""
        shape = self.output_dim, self.encoder.dim
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=shape))
        return (rng.standard_normal(shape) / np.sqrt(self.output_dim)).astype(np.float32)

    def encode(self, records: np.ndarray) -> Float32[np.ndarray, "N dim"]:
        """Return one vector per record; the other encoder's are taken from the feature cache, or kept there."""
        return _cache.features(self.encoder, records) @ self.matrix().T

    def pixels(self, records: np.ndarray) -> UInt8[np.ndarray, "N channels height width"]:
        """Return images as the other encoder reads them."""
        return self.encoder.pixels(records)

    def module(self) -> "Module":
        """Return the other encoder's torch module, and the matrix behind it."""
        from torch.nn import Sequential

        return Sequential(self.encoder.module(), self._linear())

    def staged(self) -> Staged:
        """Return the other encoder's blocks, and the matrix behind them, frozen."""
        from privkit.models._projection import ProjectedStages

        return ProjectedStages(self.encoder.staged(), self._linear().requires_grad_(False))

    def _linear(self) -> "Linear":
        import torch

        layer = torch.nn.Linear(self.encoder.dim, self.output_dim, bias=False)
        layer.weight = torch.nn.Parameter(torch.from_numpy(self.matrix()))
        return layer
