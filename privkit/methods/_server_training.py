"""Training on the server: a small torch loop over the rows of one round's prototypes.

It runs on the CPU, whatever device the clients train on, in the numbers and the order that a run's seed and round
decide: a resumed run repeats it bit by bit on the same machine with the same number of threads.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from privkit.errors import DivergedError
from privkit.plug import Settings

if TYPE_CHECKING:
    import torch
    from torch import Tensor

_LOOKED_AT = 20  # losses whose spread says whether training has settled, as in the original MPFT code


class ServerTraining(Settings):
    """How a server trains on prototypes: mini-batches in an order drawn anew for every pass."""

    optimizer: Literal["sgd", "adamw"] = Field(
        default="sgd", description="SGD or AdamW, started anew every round"
    )
    learning_rate: float = Field(default=1e-3, gt=0, description="largest step size")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="momentum of SGD, beta_1 of AdamW")
    weight_decay: float = Field(default=0.0, ge=0, description="weight decay; AdamW's is decoupled")
    batch_size: int = Field(default=64, ge=1, description="prototypes per step")
    epochs: int = Field(default=20, ge=1, description="passes over the round's prototypes, at most")
    warm_up: int = Field(
        default=0, ge=0, description="passes over which the step size grows linearly to its largest"
    )
    cosine: bool = Field(default=False, description="let the step size fall along a cosine after the warm-up")
    clip_gradient: float | None = Field(
        default=None, gt=0, description="largest norm of a step's gradient; longer ones are shortened"
    )
    settled: float | None = Field(
        default=None,
        gt=0,
        description="stop after a pass if the last 20 steps' losses have a smaller standard deviation than this",
    )

    def share(self, epoch: int) -> float:
        """Return by what the learning rate is multiplied in a pass, counted from 0."""
        if epoch < self.warm_up:
            return (epoch + 1) / self.warm_up
        if not self.cosine:
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * (epoch - self.warm_up) / max(1, self.epochs - self.warm_up)))

    def enough(self, losses: list[float]) -> bool:
        """Return whether the losses of the steps so far say that training has settled."""
        if self.settled is None or len(losses) <= _LOOKED_AT:
            return False
        return float(np.std(losses[-_LOOKED_AT:])) < self.settled

    def built(self, params: "Iterable[Tensor]") -> "torch.optim.Optimizer":
        """Return the optimizer of some parameters, before its first step."""
        import torch

        rate, decay = self.learning_rate, self.weight_decay
        if self.optimizer == "adamw":
            return torch.optim.AdamW(params, lr=rate, betas=(self.momentum, 0.999), weight_decay=decay)
        return torch.optim.SGD(params, lr=rate, momentum=self.momentum, weight_decay=decay)


def trained(
    setup: ServerTraining,
    start: Mapping[str, np.ndarray],
    loss: "Callable[[Mapping[str, Tensor], Tensor], Tensor]",
    *,
    rows: int,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Return parameters after training on the rows of some prototypes.

    Args:
        setup: how.
        start: parameters to begin with, by name, float32; they stay as they are.
        loss: mean loss of some rows (their numbers, shape [B]) under some parameters.
        rows: number of prototypes.
        rng: of the order of rows.

    Raises:
        DivergedError: a parameter is no longer finite.
    """
    import torch

    live = {name: torch.tensor(array).requires_grad_(True) for name, array in start.items()}
    optimizer, losses = setup.built(live.values()), list[float]()
    for epoch in range(setup.epochs):
        for group in optimizer.param_groups:
            group["lr"] = setup.learning_rate * setup.share(epoch)
        for chosen in torch.from_numpy(rng.permutation(rows)).split(setup.batch_size):
            losses.append(_step(setup, optimizer, list(live.values()), loss(live, chosen)))
        if setup.enough(losses):
            break
    found = {name: p.detach().numpy() for name, p in live.items()}
    if not all(np.isfinite(p).all() for p in found.values()):
        raise DivergedError(
            "the server's training diverged; lower method.server.learning_rate, or set method.cap to shorten the "
            "prototypes that arrive."
        )
    return found


def _step(
    setup: ServerTraining, optimizer: "torch.optim.Optimizer", params: "list[Tensor]", loss: "Tensor"
) -> float:
    import torch

    optimizer.zero_grad()
    loss.backward()
    if setup.clip_gradient is not None:
        torch.nn.utils.clip_grad_norm_(params, setup.clip_gradient)
    optimizer.step()
    return loss.item()
