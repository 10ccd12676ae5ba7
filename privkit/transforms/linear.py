"""Any linear map: what FedOT is compared with as FedLT."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privkit.transforms._base import AbstractTransform

if TYPE_CHECKING:
    from torch import Tensor


class Linear(AbstractTransform):
    """A matrix without any constraint, ``d * d`` numbers, which begins as the identity."""

    citation: ClassVar[str] = "fedot"

    @property
    def in_words(self) -> str:
        return "linear map"

    def start(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        return {"matrix": np.eye(dim, dtype=np.float32)}

    def apply(self, named: "Mapping[str, Tensor]", h_GBd: "Tensor") -> "Tensor":
        return h_GBd @ named["matrix"].mT

    def matrix(self, named: "Mapping[str, Tensor]") -> "Tensor":
        return named["matrix"].unsqueeze(1)
