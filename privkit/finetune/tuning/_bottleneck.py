"""A bottleneck adapter: ``h + up(relu(down(h)))``."""

import torch
from torch import Tensor, nn

from privkit.finetune.tuning._fixed import fixed_map, zero_map


class Bottleneck(nn.Module):
    """Both maps have biases and torch's own initial weights, as in ProjRes' code; neither begins at 0."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, hidden)
        self.activation: nn.Module = nn.ReLU()
        self.up = nn.Linear(hidden, width)

    def forward(self, h: Tensor) -> Tensor:
        return h + self.up(self.activation(self.down(h)))

    def fix_input(self, rank: int, *, where: str) -> nn.Linear:
        """Become ``h + U Q h`` (FISGuard's Fixed-Down Adapter: no activation, no biases); return Q, still 0."""
        width = self.down.in_features
        self.down = fixed_map(width, rank, where=where)
        self.activation = nn.Identity()
        self.up = zero_map(rank, width)
        return self.down


class After:
    """A hook that sends what a block gives through an adapter."""

    def __init__(self, adapter: Bottleneck) -> None:
        self._adapter = adapter

    def __call__(self, block: nn.Module, given: tuple[object, ...], out: object) -> object:
        if isinstance(out, torch.Tensor):
            return self._adapter(out)
        assert isinstance(out, tuple)
        return (self._adapter(out[0]), *out[1:])
