"""AdamW on stacked parameters, each client with its own step count.

torch's AdamW keeps one step count per tensor. Clients of different sizes take different numbers of
steps, so a stacked tensor needs one per slice; and clients that have run out of batches must stay as
they are, which a prefix of the client axis expresses when clients are sorted by their number of steps.

Source: Loshchilov and Hutter (2019), "Decoupled weight decay regularization", Algorithm 2.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


@dataclass(eq=False)
class StackedAdamW:
    """The optimiser's memory.

    Attributes:
        first, second: running moments by parameter name, each shaped as the parameter, [G, ...].
        steps: steps taken by each client, shape [G].
    """

    first: dict[str, Tensor]
    second: dict[str, Tensor]
    steps: Tensor
    _memory: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def start(cls, params: dict[str, Tensor]) -> "StackedAdamW":
        """Return the memory of an optimiser that has taken no step."""
        clients = next(iter(params.values())).shape[0]
        device = next(iter(params.values())).device
        return cls(
            first={name: torch.zeros_like(p) for name, p in params.items()},
            second={name: torch.zeros_like(p) for name, p in params.items()},
            steps=torch.zeros(clients, dtype=torch.int64, device=device),
        )

    @torch.no_grad()
    def step(
        self,
        params: dict[str, Tensor],
        gradients: dict[str, Tensor],
        *,
        active: int,
        learning_rate: float,
        weight_decay: float,
    ) -> None:
        """Update the first ``active`` clients in place."""
        self.steps[:active] += 1
        steps = self.steps[:active].to(torch.float64)
        corrections = 1 - BETA1**steps, 1 - BETA2**steps
        for name, gradient in gradients.items():
            p, m, v = params[name][:active], self.first[name][:active], self.second[name][:active]
            shape = (active,) + (1,) * (p.ndim - 1)
            correct1, correct2 = (c.to(p.dtype).view(shape) for c in corrections)
            m.lerp_(gradient, 1 - BETA1)
            v.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            # two tensors for all that is in between: fresh memory costs more than the arithmetic
            moved, size = self._between(p)
            torch.div(v, correct2, out=size).sqrt_().add_(TINY)
            torch.div(m, correct1, out=moved).mul_(learning_rate).div_(size)
            p.mul_(1 - learning_rate * weight_decay).sub_(moved)

    def _between(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors to write to, of a shape, from memory that is kept."""
        kept = self._memory.get(like.dtype)
        if kept is None or kept.shape[1] < like.numel():
            kept = self._memory[like.dtype] = like.new_empty((2, like.numel()))
        one, other = kept[:, : like.numel()].unbind()
        return one.view(like.shape), other.view(like.shape)
