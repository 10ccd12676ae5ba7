"""Adam on many images at once, each with its own stop rule.

Every image has its own loss, moments and stop rule, and one that has stopped leaves the batch: what comes
out for an image does not depend, but for rounding, on those it was optimised with.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8

Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class StopRule:
    """When an image is done.

    Attributes:
        steps: at the latest after so many.
        patience: before that, once so many in a row lowered the loss by no more than ``tolerance``.
        tolerance: the smallest decrease that counts, in units of the loss.
        least_steps: but never before so many.
    """

    steps: int
    patience: int
    tolerance: float
    least_steps: int


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended.

    Attributes:
        images: the best image met on the way, pixels in [0, 1]; shape [N, c, height, width].
        losses: its loss, shape [N].
        steps: steps taken, shape [N].
        converged: whether patience, not the budget, ended it; shape [N].
    """

    images: Float[Tensor, "N c height width"]
    losses: Float[Tensor, " N"]
    steps: Int64[Tensor, " N"]
    converged: Bool[Tensor, " N"]


def descend(
    logits: Float[Tensor, "N c height width"],
    loss: Loss,
    *,
    learning_rate: float,
    rule: StopRule,
    after_step: Callable[[int], None] = lambda step: None,
) -> Descent:
    """Return the images ``sigmoid(logits)`` after Adam has lowered the loss of each.

    Args:
        logits: where to start.
        loss: called with images of shape [k, c, height, width] and the rows of ``logits`` that they
            belong to, [k]; returns one loss per image, which must depend on that image alone.
        learning_rate: Adam step size, in logits.
        rule: when an image is done.
        after_step: called with the number of steps taken.

    Source: Kingma and Ba (2015), "Adam", Algorithm 1.
    """
    x, first, second = logits.clone(), torch.zeros_like(logits), torch.zeros_like(logits)
    best, kept = logits.new_full((len(logits),), torch.inf), logits.clone()
    stale, steps = (torch.zeros(len(logits), dtype=torch.int64) for _ in range(2))
    live = torch.arange(len(logits))
    for step in range(1, rule.steps + 1):
        free = x[live].requires_grad_(True)
        found = loss(free.sigmoid(), live)
        (gradient,) = torch.autograd.grad(found.sum(), free)
        better = found.detach() < best[live] - rule.tolerance
        best[live[better]], kept[live[better]] = found.detach()[better], free.detach()[better]
        stale[live] = torch.where(better, 0, stale[live] + 1)
        steps[live] = step
        first[live] = BETA1 * first[live] + (1 - BETA1) * gradient
        second[live] = BETA2 * second[live] + (1 - BETA2) * gradient**2
        scale = (second[live] / (1 - BETA2**step)).sqrt() + TINY
        x[live] -= learning_rate * first[live] / (1 - BETA1**step) / scale
        after_step(step)
        if step >= rule.least_steps:
            live = live[stale[live] < rule.patience]
        if not len(live):
            break
    return Descent(kept.sigmoid(), best, steps, stale >= rule.patience)
