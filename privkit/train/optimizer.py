"""Optimisers on stacked parameters, each client with its own step count.

torch's AdamW keeps one step count per tensor. Clients of different sizes take different numbers of
steps, so a stacked tensor needs one per slice; and clients that have run out of batches must stay as
they are, which a prefix of the client axis expresses when clients are sorted by their number of steps.

Source: Loshchilov and Hutter (2019), "Decoupled weight decay regularization", Algorithm 2; Sutskever et al. (2013),
"On the importance of initialization and momentum in deep learning", Section 2, in torch's form.
"""

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from privkit.methods._base import LocalTraining

BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


class StackedOptimizer(ABC):
    """What moves stacked parameters, with its memory."""

    @abstractmethod
    def memory(self) -> dict[str, dict[str, Tensor]]:
        """Return every tensor that a step changes besides the parameters, by what it is and by parameter."""

    @abstractmethod
    def step(
        self, params: dict[str, Tensor], gradients: dict[str, Tensor], *, active: int, setup: LocalTraining
    ) -> None:
        """Update the first ``active`` clients in place, in one pass over memory."""

    @abstractmethod
    def of(self, clients: Tensor) -> "StackedOptimizer":
        """Return the optimiser of the clients of some numbers, with a copy of what it remembers of them."""

    @abstractmethod
    def pass_over(self, client: int, steps: int) -> None:
        """Count a client's steps as if it had taken so many."""


@dataclass(eq=False)
class StackedSGD(StackedOptimizer):
    """Stochastic gradient descent; its weight decay is the gradient of a squared norm, as in ``torch.optim.SGD``.

    Attributes:
        velocity: running sums of gradients by parameter name; ``None`` without momentum.
    """

    velocity: dict[str, Tensor] | None

    @classmethod
    def start(cls, params: dict[str, Tensor], setup: LocalTraining) -> "StackedSGD":
        """Return the memory of an optimiser that has taken no step."""
        return cls({name: torch.zeros_like(p) for name, p in params.items()} if setup.momentum else None)

    def memory(self) -> dict[str, dict[str, Tensor]]:
        return {} if self.velocity is None else {"velocity": self.velocity}

    @torch.no_grad()
    def step(
        self, params: dict[str, Tensor], gradients: dict[str, Tensor], *, active: int, setup: LocalTraining
    ) -> None:
        sgd(
            [params[name][:active] for name in gradients],
            # the kernel misreads a gradient that is not contiguous, and says nothing
            [g.contiguous() for g in gradients.values()],
            [None if self.velocity is None else self.velocity[name][:active] for name in gradients],
            fused=True,
            weight_decay=setup.weight_decay,
            momentum=setup.momentum,
            lr=setup.learning_rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

    def of(self, clients: Tensor) -> "StackedSGD":
        return StackedSGD(None if self.velocity is None else _of(self.velocity, clients))

    def pass_over(self, client: int, steps: int) -> None:
        """Do nothing: no step depends on how many came before."""


@dataclass(eq=False)
class StackedAdamW(StackedOptimizer):
    """AdamW.

    Attributes:
        first, second: running moments by parameter name, each shaped as the parameter, [G, ...].
        steps: steps taken by each client, shape [G].
    """

    first: dict[str, Tensor]
    second: dict[str, Tensor]
    steps: Tensor

    @classmethod
    def start(cls, params: dict[str, Tensor], setup: LocalTraining) -> "StackedAdamW":
        """Return the memory of an optimiser that has taken no step."""
        clients = next(iter(params.values())).shape[0]
        device = next(iter(params.values())).device
        return cls(
            first={name: torch.zeros_like(p) for name, p in params.items()},
            second={name: torch.zeros_like(p) for name, p in params.items()},
            steps=torch.zeros(clients, dtype=torch.int64, device=device),
        )

    def memory(self) -> dict[str, dict[str, Tensor]]:
        return {"first": self.first, "second": self.second, "steps": {"all": self.steps}}

    def of(self, clients: Tensor) -> "StackedAdamW":
        return StackedAdamW(_of(self.first, clients), _of(self.second, clients), self.steps[clients])

    def pass_over(self, client: int, steps: int) -> None:
        self.steps[client] = steps

    @torch.no_grad()
    def step(
        self, params: dict[str, Tensor], gradients: dict[str, Tensor], *, active: int, setup: LocalTraining
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
            lr=setup.learning_rate,
            weight_decay=setup.weight_decay,
        )
        self.steps[:active] += 1


def _of(named: dict[str, Tensor], clients: Tensor) -> dict[str, Tensor]:
    return {name: tensor[clients] for name, tensor in named.items()}


def _alike(steps: list[float]) -> list[slice]:
    """Return runs of clients with equal step counts."""
    cuts = [0, *(g for g in range(1, len(steps)) if steps[g] != steps[g - 1]), len(steps)]
    return [slice(*ends) for ends in itertools.pairwise(cuts)]


OPTIMIZERS = {"adamw": StackedAdamW, "sgd": StackedSGD}
"""By the name of a :class:`~privkit.methods._base.LocalTraining`."""
