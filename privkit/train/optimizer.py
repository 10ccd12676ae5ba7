"""AdamW on stacked parameters, each client with its own step count.

torch's AdamW keeps one step count per tensor. Clients of different sizes take different numbers of
steps, so a stacked tensor needs one per slice; and clients that have run out of batches must stay as
they are, which a prefix of the client axis expresses when clients are sorted by their number of steps.

Source: Loshchilov and Hutter (2019), "Decoupled weight decay regularization", Algorithm 2.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adamw import adamw

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
        """Update the first ``active`` clients in place, in one pass over memory.

        Clients that have taken equally many steps are neighbours, and go through torch's fused kernel together.
        """
        taken = self.steps[:active].to(torch.float32)
        chosen = [(name, part) for part in _alike(taken.tolist()) for name in gradients]
        adamw(
            [params[name][part] for name, part in chosen],
            # the kernel misreads a gradient that is not contiguous, and says nothing
            [gradients[name][part].contiguous() for name, part in chosen],
            [self.first[name][part] for name, part in chosen],
            [self.second[name][part] for name, part in chosen],
            [],
            [taken[part.start].clone() for _, part in chosen],
            fused=True,
            amsgrad=False,
            maximize=False,
            beta1=BETA1,
            beta2=BETA2,
            eps=TINY,
            lr=learning_rate,
            weight_decay=weight_decay,
        )
        self.steps[:active] += 1


def _alike(steps: list[float]) -> list[slice]:
    """Return runs of clients with equal step counts."""
    cuts = [0, *(g for g in range(1, len(steps)) if steps[g] != steps[g - 1]), len(steps)]
    return [slice(*ends) for ends in itertools.pairwise(cuts)]
