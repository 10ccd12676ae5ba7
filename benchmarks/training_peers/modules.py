"""What the peers train: one ``torch.nn.Module`` per client, started from privkit's own initial parameters."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.federation import Federation


class Adapter(nn.Module):
    """A residual bottleneck after the cached features."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.down = nn.Linear(dim, width, bias=False)
        self.up = nn.Linear(width, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.up(torch.relu(self.down(x)))


class Model(nn.Module):
    """``base`` embeds, ``head`` classifies; both may be called apart."""

    def __init__(self, dim: int, *, adapter: int, hidden: Sequence[int], num_classes: int) -> None:
        super().__init__()
        self.base = Adapter(dim, adapter)
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise([dim, *hidden, num_classes]):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.head = nn.Sequential(*layers[:-1])

    @classmethod
    def of(cls, given: Federation) -> "Model":
        """Return the model of a federation as privkit starts it, in the precision of its features."""
        width = given.model.adapter
        assert width is not None
        model = cls(given.dim, adapter=width, hidden=given.model.hidden, num_classes=given.num_classes)
        model.to(torch.from_numpy(given.clients[0].x).dtype).load_state_dict(from_privkit(given.start))
        return model

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.base(x))


def from_privkit(named: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Return a client's parameters under the names of :class:`Model`; privkit stores weights as [inputs, outputs]."""
    return {_renamed(name): torch.from_numpy(p.T.copy()) for name, p in named.items()}


def to_privkit(named: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Return a :class:`Model`'s parameters as privkit names and stores them."""
    found: dict[str, np.ndarray] = {}
    for name, p in named.items():
        part, _, rest = name.partition(".")
        layer, _, kind = rest.partition(".")
        if part == "base":
            found[f"adapter.{layer}"] = p.detach().numpy().T.copy()
        else:
            prefix = f"head.{int(layer) // 2}." if int(layer) else "head."
            found[f"{prefix}{kind}"] = p.detach().numpy().T.copy()
    return found


def _renamed(name: str) -> str:
    part, _, rest = name.partition(".")
    if part == "adapter":
        return f"base.{rest}.weight"
    layer, _, kind = rest.rpartition(".")
    return f"head.{2 * int(layer or 0)}.{kind}"
