"""The trained part of the model on stacked clients: adapter or another map after the frozen backbone, and head.

Every tensor has a leading client axis, so that all clients (and seeds, and noise levels) are trained by
one call: clients own disjoint slices, hence the gradient of the summed loss holds each one's gradient.

Shapes: G clients, B records, d embedding width, r adapter width, C classes.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from privkit.noise import Purpose, keyed
from privkit.personal import PersonalModel

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TRANSFORM = "transform."
"""What the names of a transform's parameters begin with."""

Drops = Callable[["Tensor"], "Tensor"]
"""What leaves some hidden units out: takes and returns a tensor whose first two axes are clients and records."""


def nothing_dropped(h: "Tensor") -> "Tensor":
    """Return hidden units as they are."""
    return h


class _Given(NamedTuple):
    """What the head gave for some embeddings."""

    params: "Mapping[str, Tensor]"
    u_GBd: "Tensor"
    logits_GBC: "Tensor"


@dataclass(frozen=True, eq=False)
class Network:
    """Adapter or another map after the backbone (or none), and head, as pure functions of stacked parameters.

    Attributes:
        settings: what is trained.
        drops: what leaves hidden units out during training; nothing does at test time.
        given: what the head gave in this step; ``None`` outside of one.
        at_once: about how many records may pass it together, for the memory that takes.
    """

    at_once: ClassVar[int] = 2_048

    settings: PersonalModel
    drops: Drops = nothing_dropped
    given: "list[_Given] | None" = None

    def to(self, device: "torch.device") -> "Network":
        """Return the network with its frozen part, if it has one, on a device."""
        return self

    def training(self, drops: Drops) -> "Network":
        """Return the network as it is trained."""
        return replace(self, drops=drops)

    def step(self) -> "Network":
        """Return the network for one step: the terms of a loss share one pass of the same embeddings through the head.

        So they see the same units left out, and the pass is paid for once.
        """
        return replace(self, given=[])

    def with_logits(self, params: "Mapping[str, Tensor]", u_GBd: "Tensor", logits_GBC: "Tensor") -> "Network":
        """Return the network for one step in which the head's logits of some embeddings are known."""
        return replace(self, given=[_Given(params, u_GBd, logits_GBC)])

    @property
    def still(self) -> "Network":
        """Return the network as it is tested, and as teachers use it: nothing is left out."""
        return replace(self, drops=nothing_dropped, given=None)

    def start(self, *, dim: int, num_classes: int, seed: int) -> dict[str, np.ndarray]:
        """Return the initial parameters that every client of a run starts from, without client axis.

        Adapters start as the identity (their up-projections are zero); the rest is uniform in
        ``+-1/sqrt(inputs)``, as ``torch.nn.Linear``.

        Raises:
            InputError: the transform does not take embeddings of this width.
        """
        rng = keyed(seed, Purpose.INIT)
        head, adapters = self._start_head(rng, dim, num_classes), self._start_adapters(rng, dim)
        return head | adapters | self._start_transform(rng, dim)

    def headed(self, start: Mapping[str, np.ndarray], vectors_Cd: np.ndarray) -> dict[str, np.ndarray]:
        """Return initial parameters with a head of one linear layer that has these weights, float32."""
        name = "head.weight" if self.settings.temperature is None else "head.vectors"
        return {**start, name: np.ascontiguousarray(vectors_Cd.T, dtype=np.float32)}

    def _start_head(self, rng: np.random.Generator, dim: int, num_classes: int) -> dict[str, np.ndarray]:
        if self.settings.temperature is not None:
            return {"head.vectors": uniform(rng, dim, num_classes)}
        widths = (dim, *self.settings.hidden, num_classes)
        named = {}
        for layer, (inputs, outputs) in enumerate(itertools.pairwise(widths)):
            named[f"{_layer(layer)}weight"] = uniform(rng, inputs, outputs)
            named[f"{_layer(layer)}bias"] = np.zeros(outputs, dtype=np.float32)
        return named

    def _start_adapters(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        width = self.settings.adapter
        return {} if width is None else started_adapter(rng, "adapter.", dim, width)

    def _start_transform(self, rng: np.random.Generator, dim: int) -> dict[str, np.ndarray]:
        transform = self.settings.transform
        started = {} if transform is None else transform.start(rng, dim)
        return {f"{TRANSFORM}{name}": array for name, array in started.items()}

    def backbone(self, x: "Tensor") -> "Tensor":
        """Return what the frozen backbone alone gives for some inputs, shape [G, B, d]."""
        return x

    def embed(self, params: "Mapping[str, Tensor]", x: "Tensor") -> "Tensor":
        """Return the embedding of each record, shape [G, B, d].

        Args:
            params: parameters, with the client axis first.
            x: inputs: features of the backbone, shape [G, B, d].
        """
        transform = self.settings.transform
        if transform is not None:
            named = {n.removeprefix(TRANSFORM): p for n, p in params.items() if n.startswith(TRANSFORM)}
            return transform.apply(named, x)
        return x if self.settings.adapter is None else self.adapted(params, "adapter.", x)

    def adapted(self, params: "Mapping[str, Tensor]", prefix: str, h: "Tensor") -> "Tensor":
        """Return ``h + up(drop(relu(down(h))))``, the client's own adapter of a name on [G, N, width]."""
        hidden = (h @ params[f"{prefix}down"]).relu()
        return h + self.drops(hidden) @ params[f"{prefix}up"]

    def logits(self, params: "Mapping[str, Tensor]", u_GBd: "Tensor") -> "Tensor":
        """Return the head's logits of some embeddings, shape [G, B, C]."""
        for one in self.given or ():
            if one.params is params and one.u_GBd is u_GBd:
                return one.logits_GBC
        found = self._through_head(params, u_GBd)
        if self.given is not None:
            self.given.append(_Given(params, u_GBd, found))
        return found

    def _through_head(self, params: "Mapping[str, Tensor]", u_GBd: "Tensor") -> "Tensor":
        if self.settings.temperature is not None:
            from torch.nn.functional import normalize

            return self.settings.temperature * normalize(u_GBd, dim=-1) @ params["head.vectors"]
        h = u_GBd
        for layer in range(len(self.settings.hidden)):
            h = self.drops(_linear(params, layer, h).relu())
        return _linear(params, len(self.settings.hidden), h)


def _layer(layer: int) -> str:
    """Return the prefix of a head's layer: the first has none of its own, so that one layer is just a head."""
    return f"head.{layer}." if layer else "head."


def _linear(params: "Mapping[str, Tensor]", layer: int, h: "Tensor") -> "Tensor":
    return h @ params[f"{_layer(layer)}weight"] + params[f"{_layer(layer)}bias"].unsqueeze(1)


def started_adapter(rng: np.random.Generator, prefix: str, dim: int, width: int) -> dict[str, np.ndarray]:
    """Return an adapter that does nothing yet: its up-projection is zero."""
    return {
        f"{prefix}down": uniform(rng, dim, width),
        f"{prefix}up": np.zeros((width, dim), dtype=np.float32),
    }


def uniform(rng: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    """Return weights of shape [inputs, outputs], uniform in ``+-1/sqrt(inputs)``, float32."""
    bound = 1.0 / np.sqrt(inputs)
    return rng.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)
