"""FedCLIP's attention: a small network that weighs the coordinates of an embedding."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privkit.network import uniform
from privkit.transforms._base import AbstractTransform

if TYPE_CHECKING:
    from torch import Tensor


class Gate(AbstractTransform):
    """``h * softmax(B tanh(A h + a) + b)``, coordinate by coordinate, with ``2 (d * d + d)`` numbers.

    A and B begin uniform in ``+-1/sqrt(d)`` and their biases as zeros: then no weight is far from 1/d, a factor that a
    head at a temperature does not see.
    """

    citation: ClassVar[str] = "fedclip"

    @property
    def in_words(self) -> str:
        return "gate"

    def start(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        bias = np.zeros(dim, dtype=np.float32)
        first, second = uniform(rng, dim, dim), uniform(rng, dim, dim)
        return {
            "first.weight": first,
            "first.bias": bias,
            "second.weight": second,
            "second.bias": bias.copy(),
        }

    def apply(self, named: "Mapping[str, Tensor]", h_GBd: "Tensor") -> "Tensor":
        hidden = (h_GBd @ named["first.weight"] + named["first.bias"].unsqueeze(1)).tanh()
        scores = hidden @ named["second.weight"] + named["second.bias"].unsqueeze(1)
        return h_GBd * scores.softmax(-1)
