"""Dropout whose masks are drawn by (seed, round, client), and which is there only while gradients are computed."""

from typing import Any, ClassVar

import torch
from torch import nn

from privkit.finetune.batches import Batch
from privkit.finetune.guard import Guard
from privkit.finetune.model import Tuned, Weights
from privkit.finetune.terms import Terms
from privkit.noise import Purpose, keyed

READERS = ("head", ".up", ".lora_A.default")
"""Ends of the names of maps whose inputs are dropped."""


class DropoutGuard(Guard):
    """Drop features of one client's records at a time."""

    alone: ClassVar[bool] = True
    repeatable: ClassVar[bool] = False

    def __init__(self, terms: Terms, *, p: float, seed: int) -> None:
        super().__init__(terms)
        self.p, self.seed = p, seed

    def gradients(self, model: Tuned, batch: Batch) -> dict[int, Weights]:
        (client,) = batch.sizes
        drawn = keyed(self.seed, Purpose.DROPOUT, round=batch.round, client=client).integers(
            2**63, size=batch.step + 1
        )
        drop = _Drop(self.p, torch.Generator(model.device).manual_seed(int(drawn[-1])))
        readers = [
            m for name, m in model.named_modules() if isinstance(m, nn.Linear) and name.endswith(READERS)
        ]
        handles = [m.register_forward_pre_hook(drop) for m in readers]
        try:
            return super().gradients(model, batch)
        finally:
            for handle in handles:
                handle.remove()


class _Drop:
    def __init__(self, p: float, generator: torch.Generator) -> None:
        self.p, self.generator = p, generator

    def __call__(self, module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        x = given[0]
        kept = torch.rand(x.shape, generator=self.generator, device=x.device) >= self.p
        return (x * kept / (1 - self.p), *given[1:])
