"""Maps whose input side is fixed: ``y = W0 x + U Q x``, where only U is trained, from 0."""

import torch
from torch import Tensor, nn

from privkit.errors import InputError


def fixed_map(width: int, rank: int, *, where: str) -> nn.Linear:
    """Return a map of ``rank`` rows that is not trained, its weights 0.

    Raises:
        InputError: it would hide nothing: ``rank`` is the width of its input, or more.
    """
    if rank >= width:
        raise InputError(
            f"rank={rank}: {where} has inputs of width {width}, and a fixed subspace must be smaller; give less."
        )
    return zero_map(width, rank).requires_grad_(False)


def zero_map(width: int, out: int) -> nn.Linear:
    """Return a map without bias that gives 0."""
    found = nn.Linear(width, out, bias=False)
    nn.init.zeros_(found.weight)
    return found


class FixedInput(nn.Module):
    """Any linear map with a fixed input: its own weights are frozen, its bias is trained, and U Q is added."""

    def __init__(self, base: nn.Linear, *, rank: int, where: str) -> None:
        super().__init__()
        self.base = base
        self.base.weight.requires_grad_(False)
        self.down = fixed_map(base.in_features, rank, where=where)
        self.up = zero_map(rank, base.out_features)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


@torch.no_grad()
def fix(fixed: nn.Linear, basis: Tensor) -> None:
    """Set the rows of a fixed map, shape [rank, d]."""
    fixed.weight.copy_(basis)
