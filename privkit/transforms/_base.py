"""What maps a frozen embedding to another of the same width, with parameters of each client's own."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from privkit.plug import Plugin

if TYPE_CHECKING:
    from torch import Tensor


class AbstractTransform(Plugin):
    """A map between frozen embedding and head. Its parameters have no client axis at the start, and one in front later.

    What a newcomer has is what it starts from, where a server does not send its parameters.
    """

    @property
    @abstractmethod
    def in_words(self) -> str:
        """Return what it is, as reports say it."""

    @abstractmethod
    def start(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        """Return its initial parameters by name, float32, for embeddings of some width.

        Raises:
            InputError: it does not take such embeddings.
        """

    @abstractmethod
    def apply(self, named: "Mapping[str, Tensor]", h_GBd: "Tensor") -> "Tensor":
        """Return the mapped embeddings, shape [G, B, d].

        Args:
            named: its parameters, with the client axis first.
            h_GBd: embeddings under the frozen encoder.
        """

    def matrix(self, named: "Mapping[str, Tensor]") -> "Tensor | None":
        """Return its matrix, ``h' = M h``, as the blocks on the diagonal, [G, r, d/r, d/r]; ``None`` if it has none."""
        return None
