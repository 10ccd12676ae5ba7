"""Adapters inside the frozen backbone, one after every block: the form of the VPDR paper for ViT and ResNet.

The backbone is shared and frozen; the records of all clients go through each of its blocks as one batch, and
each client's adapter then sees its own slice. Features cannot be cached, since every adapter changes them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privkit.network import Network, started_adapter

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from privkit.models._base import Staged


@dataclass(frozen=True, eq=False)
class InsideNetwork(Network):
    """Inputs are pixels, uint8 of shape [G, B, channels, height, width].

    Attributes:
        staged: the frozen backbone, block by block.
    """

    at_once: ClassVar[int] = 256

    staged: "Staged" = field(kw_only=True)

    def to(self, device: "torch.device") -> "InsideNetwork":
        return replace(self, staged=self.staged.to(device))

    def _start_adapters(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        assert self.settings.adapter is not None
        named = {}
        for block, channels in enumerate(self.staged.widths):
            named |= started_adapter(rng, _prefix(block), channels, self.settings.adapter)
        return named

    def backbone(self, x: "Tensor") -> "Tensor":
        return self._through(x, lambda block, h: h)

    def embed(self, params: "Mapping[str, Tensor]", x: "Tensor") -> "Tensor":
        clients = len(x)

        def after(block: int, h: "Tensor") -> "Tensor":
            own = h.reshape(clients, -1, h.shape[-1])
            return self.adapted(params, _prefix(block), own).reshape(h.shape)

        return self._through(x, after)

    def _through(self, x: "Tensor", after: "Callable[[int, Tensor], Tensor]") -> "Tensor":
        pixels = x.flatten(0, 1).float() / 255
        return self.staged.adapted(pixels, after).unflatten(0, x.shape[:2])


def _prefix(block: int) -> str:
    return f"adapter.{block}."
