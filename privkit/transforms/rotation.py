"""A rotation, whole or in blocks: FedOT and FedOT(+B)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from privkit.cayley import cayley, rotate
from privkit.errors import InputError
from privkit.transforms._base import AbstractTransform

if TYPE_CHECKING:
    from torch import Tensor


class Rotation(AbstractTransform):
    """The rotation that the Cayley transform makes of an unconstrained matrix, which begins as zeros: the identity.

    ``d * d / r`` numbers are stored, ``d (d/r - 1) / 2`` of them free. It keeps lengths and angles, so all clients'
    heads behind it have the same Gram matrix: only their orientation is personal. Reflections cannot be reached.
    """

    citation: ClassVar[str] = "fedot"

    blocks: int = Field(
        default=1,
        ge=1,
        description="blocks of equal width on the diagonal, r; 1 is FedOT, more are FedOT(+B); it must divide the "
        "width of an embedding, and as many as that leave no rotation",
    )

    @property
    def in_words(self) -> str:
        return "rotation" if self.blocks == 1 else f"rotation in {self.blocks} blocks"

    def start(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        if dim % self.blocks:
            near = max(r for r in range(1, self.blocks) if dim % r == 0)
            raise InputError(
                f"{self.blocks} blocks do not divide embeddings of width {dim}; set model.transform.blocks to a "
                f"divisor such as {near}."
            )
        width = dim // self.blocks
        return {"x": np.zeros((self.blocks, width, width), dtype=np.float32)}

    def apply(self, named: "Mapping[str, Tensor]", h_GBd: "Tensor") -> "Tensor":
        return rotate(named["x"], h_GBd)

    def matrix(self, named: "Mapping[str, Tensor]") -> "Tensor":
        return cayley(named["x"])
