"""Terms of most losses with their gradients by hand: a third of the passes over memory that autograd makes.

Each is a leaf of the usual graph, so a method stays free to add any other term.
"""

from typing import Any

import torch
from torch import Tensor


class CrossEntropy(torch.autograd.Function):
    """Each client's weighted mean cross-entropy, shape [G]; its slope is ``weight (softmax(logits) - onehot(y))``."""

    @staticmethod
    def forward(ctx: Any, logits_GBC: Tensor, y_GB: Tensor, weight_GB: Tensor) -> Tensor:
        exact = logits_GBC.to(torch.promote_types(logits_GBC.dtype, torch.float32))
        y_GB1, weight_GB1 = y_GB.unsqueeze(-1), weight_GB.to(exact.dtype).unsqueeze(-1)
        shifted_GBC = exact - exact.amax(-1, keepdim=True)
        chosen_GB1 = shifted_GBC.gather(-1, y_GB1)
        whole_GB1 = shifted_GBC.exp_().sum(-1, keepdim=True)
        slope_GBC = shifted_GBC.mul_(weight_GB1 / whole_GB1).scatter_add_(-1, y_GB1, -weight_GB1)
        ctx.save_for_backward(slope_GBC)
        ctx.given = logits_GBC.dtype
        return (weight_GB1 * (whole_GB1.log() - chosen_GB1)).sum((1, 2))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (slope_GBC,) = ctx.saved_tensors
        return (slope_GBC * grads[0].view(-1, 1, 1)).to(ctx.given), None, None


class MeanSquare(torch.autograd.Function):
    """Each client's weighted mean over records of the mean square of ``u - target`` over coordinates, shape [G]."""

    @staticmethod
    def forward(ctx: Any, u_GBd: Tensor, target_GBd: Tensor, weight_GB: Tensor) -> Tensor:
        away_GBd = u_GBd - target_GBd
        ctx.save_for_backward(away_GBd, weight_GB)
        ctx.given = u_GBd.dtype
        return ((away_GBd * away_GBd).mean(-1) * weight_GB).sum(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        away_GBd, weight_GB = ctx.saved_tensors
        slope_GB = grads[0].unsqueeze(-1) * weight_GB * (2 / away_GBd.shape[-1])
        return (away_GBd * slope_GB.unsqueeze(-1)).to(ctx.given), None, None
