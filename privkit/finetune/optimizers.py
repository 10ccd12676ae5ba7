"""Optimisers of one client or of the server, as plain steps on named tensors with a memory that can be kept."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from privkit.finetune.model import Weights
from privkit.finetune.terms import Optimizer

Rates = Mapping[str, float]
"""Learning rate of each parameter, by name."""


class AbstractOptimizer(ABC):
    """Keeps its memory in named tensors."""

    def __init__(self, weights: Weights) -> None:
        self.memory: Weights = {}

    @abstractmethod
    def step(self, weights: Weights, gradient: Mapping[str, Tensor], rates: Rates) -> Weights:
        """Return the weights after one step; those given stay as they are."""


class Sgd(AbstractOptimizer):
    """``w - rate g``."""

    def step(self, weights: Weights, gradient: Mapping[str, Tensor], rates: Rates) -> Weights:
        return {name: w - rates[name] * gradient[name] for name, w in weights.items()}


class Adam(AbstractOptimizer):
    """Adam without weight decay, as ``torch.optim.Adam`` by default.

    Source: Kingma and Ba (2015), Algorithm 1
    """

    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)
    eps: ClassVar[float] = 1e-8

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self.memory = {f"{moment}.{n}": torch.zeros_like(w) for moment in "mv" for n, w in weights.items()}
        self.memory["steps"] = torch.zeros((), dtype=torch.int64)

    def step(self, weights: Weights, gradient: Mapping[str, Tensor], rates: Rates) -> Weights:
        t, (one, two) = int(self.memory["steps"]) + 1, self.betas
        self.memory["steps"] = torch.tensor(t)
        found: Weights = {}
        for name, w in weights.items():
            g = gradient[name]
            m = self.memory[f"m.{name}"] = one * self.memory[f"m.{name}"] + (1 - one) * g
            v = self.memory[f"v.{name}"] = two * self.memory[f"v.{name}"] + (1 - two) * g * g
            width = (v / (1 - two**t)).sqrt() + self.eps
            found[name] = w - rates[name] / (1 - one**t) * m / width
        return found


OPTIMIZERS: dict[Optimizer, type[AbstractOptimizer]] = {Optimizer.ADAM: Adam, Optimizer.SGD: Sgd}
