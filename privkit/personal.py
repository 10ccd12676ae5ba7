"""The part of the model that is trained: an optional adapter after the frozen encoder, and a head.

Every tensor has a leading client axis, so that all clients (and seeds, and noise levels) are trained by
one call: clients own disjoint slices, hence the gradient of the summed loss holds each one's gradient.

Shapes: G clients, B records, d embedding width, r adapter width, C classes.
"""

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from accountant.contract import DependsOn
from privkit.noise import Purpose, keyed
from privkit.plug import Settings

if TYPE_CHECKING:
    from torch import Tensor


class PersonalModel(Settings):
    """Residual bottleneck adapter after the backbone (or none), then a linear head."""

    adapter: int | None = Field(
        default=None, ge=1, description="bottleneck width of the adapter; none leaves the encoder frozen"
    )

    @property
    def encoder_depends_on(self) -> DependsOn:
        """Return what the map from record to embedding is computed from."""
        return DependsOn.PUBLIC if self.adapter is None else DependsOn.PRIVATE_STATE

    @property
    def placement(self) -> str:
        """Return, in words, what of the model is trained."""
        if self.adapter is None:
            return "frozen encoder, trained head"
        return f"adapter of width {self.adapter} after the frozen backbone, trained head"

    def start(self, *, dim: int, num_classes: int, seed: int) -> dict[str, np.ndarray]:
        """Return the initial parameters that every client of a run starts from, without client axis.

        The adapter starts as the identity (its up-projection is zero); the rest is uniform in
        ``+-1/sqrt(inputs)``, as ``torch.nn.Linear``.
        """
        rng = keyed(seed, Purpose.INIT)
        named = {
            "head.weight": _uniform(rng, dim, num_classes),
            "head.bias": np.zeros(num_classes, dtype=np.float32),
        }
        if self.adapter is not None:
            named["adapter.down"] = _uniform(rng, dim, self.adapter)
            named["adapter.up"] = np.zeros((self.adapter, dim), dtype=np.float32)
        return named

    def embed(self, params: "dict[str, Tensor]", x_GBd: "Tensor") -> "Tensor":
        """Return the embedding of each record, shape [G, B, d]."""
        if self.adapter is None:
            return x_GBd
        return x_GBd + (x_GBd @ params["adapter.down"]).relu() @ params["adapter.up"]

    def logits(self, params: "dict[str, Tensor]", u_GBd: "Tensor") -> "Tensor":
        """Return the head's logits of some embeddings, shape [G, B, C]."""
        return u_GBd @ params["head.weight"] + params["head.bias"].unsqueeze(1)


def _uniform(rng: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    bound = 1.0 / np.sqrt(inputs)
    return rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
