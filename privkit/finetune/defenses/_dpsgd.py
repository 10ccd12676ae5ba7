"""Gradients of single records, clipped and summed with noise by Opacus."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import nn

from privkit.finetune.batches import Batch
from privkit.finetune.guard import Guard
from privkit.finetune.model import Tuned, Weights, passes
from privkit.finetune.terms import Terms
from privkit.finetune.trace import refuse_no_class
from privkit.noise import Purpose, keyed


class DpsgdGuard(Guard):
    """One client's noisy mean at a time; noise is drawn by (seed, round, client)."""

    alone: ClassVar[bool] = True

    def __init__(self, terms: Terms, *, noise_multiplier: float, clip_norm: float, seed: int) -> None:
        super().__init__(terms)
        self.noise_multiplier, self.clip_norm, self.seed = noise_multiplier, clip_norm, seed

    @property
    def step_clip(self) -> None:
        """Return ``None``: records are clipped instead."""

    def gradients(self, model: Tuned, batch: Batch) -> dict[int, Weights]:
        from opacus.optimizers import DPOptimizer

        (client,) = batch.sizes
        trained = model.trained()
        with _sample_gradients(self, model, batch):
            optimizer = DPOptimizer(
                torch.optim.SGD(trained.values(), lr=1.0),
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=self.clip_norm,
                expected_batch_size=1,
                loss_reduction="sum",
                generator=self._generator(batch, client, model.device),
            )
            optimizer.pre_step()
            return {
                client: {n: p.grad / batch.sizes[client] for n, p in trained.items() if p.grad is not None}
            }

    def _generator(self, batch: Batch, client: int, device: torch.device) -> torch.Generator:
        source = keyed(self.seed, Purpose.RELEASE, round=batch.round, client=client)
        return torch.Generator(device).manual_seed(int(source.integers(2**63, size=batch.step + 1)[-1]))


@contextmanager
def _sample_gradients(guard: Guard, model: Tuned, batch: Batch) -> Iterator[None]:
    """Keep every record's own gradient in ``grad_sample`` of each trained parameter, shape [N, ...], inside."""
    from opacus.grad_sample import GradSampleModule

    wrapped = GradSampleModule(model, batch_first=True, loss_reduction="sum")
    for p in model.trained().values():
        p.grad_sample = torch.zeros((0, *p.shape), device=p.device)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        for m in model.modules():
            if isinstance(m, nn.Linear):
                m.train()  # Opacus looks at modules in training only; it changes nothing in a linear map
        for rows, ids, lengths in passes(model, batch.texts):
            logits_NC = wrapped(ids, lengths)
            refuse_no_class(batch.labels[rows], classes=logits_NC.shape[1])
            total = guard.record_losses(logits_NC, torch.from_numpy(batch.labels[rows]).to(ids.device)).sum()
            with warnings.catch_warnings():
                # the first trained map reads frozen features, which need no gradient
                warnings.filterwarnings("ignore", message="Full backward hook is firing")
                total.backward()
        yield
    finally:
        wrapped.to_standard_module()
        model.eval()
        for p in model.trained().values():
            p.grad = p.summed_grad = None  # pyright: ignore[reportAttributeAccessIssue]
