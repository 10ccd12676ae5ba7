"""DP-SGD on stacked clients: each record's own gradient, clipped, summed over a Poisson sample, with noise.

A record's gradient is that of a client who has nothing else: parameters are repeated once per record, and one
``autograd.grad`` of the summed losses gives every record's own, whatever the method's loss.

Shapes: G clients, B slots of a sample, T steps.

Source: Abadi et al. (2016), "Deep learning with differential privacy", Algorithm 1
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from privkit.batch import Batch
from privkit.defenses._by_record import RecordNoise
from privkit.methods._base import AbstractMethod
from privkit.methods._phases import Phase
from privkit.noise import Purpose, keyed
from privkit.train.cohort import Cohort

OfBatch = Callable[[slice, Tensor, Tensor], Batch]
"""Returns some clients' records of a step, from the rows and weights of all clients."""
OfRecords = Callable[[Tensor, Batch], dict[str, Tensor]]
"""Returns gradients by parameter, of a batch of clients of some numbers, which may repeat."""


@dataclass(frozen=True, eq=False)
class PrivateSteps:
    """The steps of one phase of one round.

    Attributes:
        rule: clip and noise.
        rows: record of each slot, shape [T, G, B] (0 where a slot is empty).
        taken: 1 where a slot is not empty, else 0; the same shape.
        active: clients that take each step, shape [T]; a prefix of the axis.
        expected: expected number of records of a sample of each client, shape [G].
        noise: what each client draws its noise from.
    """

    rule: RecordNoise
    rows: Tensor
    taken: Tensor
    active: np.ndarray
    expected: Tensor
    noise: list[np.random.Generator]

    @classmethod
    def of(
        cls,
        rule: RecordNoise,
        cohort: Cohort,
        round: int,
        method: AbstractMethod,
        phase: Phase,
        *,
        skipped: int,
    ) -> "PrivateSteps":
        """Return the steps of a phase: as many as mini-batches would be, each of a sample of every record's own coin.

        Args:
            rule: clip and noise.
            cohort: the clients.
            round: of the run.
            method: says how large samples are to be expected.
            phase: that is trained.
            skipped: passes over this model in phases before it, so that no phase draws what another drew.
        """
        steps = phase.epochs * -(-cohort.n // method.training.batch_size)
        rates = np.array([method.sampling_rate(n) for n in cohort.n.tolist()])
        streams = [
            [
                keyed(client.seed, purpose, round=round, client=client.index, within=_within(phase, skipped))
                for client in cohort.clients
            ]
            for purpose in (Purpose.POISSON, Purpose.LOCAL_NOISE)
        ]
        drawn = [
            [np.flatnonzero(rng.random(n) < rate) for _ in range(taken)]
            for rng, n, rate, taken in zip(streams[0], cohort.n, rates, steps, strict=True)
        ]
        rows, taken = _padded(drawn)
        dtype = cohort.x.dtype if cohort.x.is_floating_point() else torch.float32
        device = cohort.x.device
        return cls(
            rule,
            torch.from_numpy(rows).to(device),
            torch.from_numpy(taken).to(device, dtype),
            (np.arange(len(rows))[:, None] < steps).sum(1),
            torch.from_numpy(rates * cohort.n).to(device, dtype),
            streams[1],
        )

    def steps(self, of_batch: OfBatch, of_records: OfRecords) -> Iterator[tuple[int, dict[str, Tensor]]]:
        """Yield, step by step, how many clients take it, and their noisy mean gradients by parameter."""
        for rows, taken, k in zip(self.rows, self.taken, self.active.tolist(), strict=True):
            batch = of_batch(slice(0, k), rows, taken)
            clipped = _clipped_sums(batch, of_records, norm=self.rule.clip_norm)
            yield k, {name: self._noisy(total, k) for name, total in clipped.items()}

    def _noisy(self, sum_G: Tensor, clients: int) -> Tensor:
        drawn = np.stack([rng.standard_normal(sum_G.shape[1:]) for rng in self.noise[:clients]])
        noise = self.rule.noise_std * torch.from_numpy(drawn).to(sum_G.device, sum_G.dtype)
        return (sum_G + noise) / self.expected[:clients].view(-1, *[1] * (sum_G.ndim - 1))


def _clipped_sums(batch: Batch, of_records: OfRecords, *, norm: float) -> dict[str, Tensor]:
    """Return each client's sum of its records' gradients, each shortened to a norm over all parameters together."""
    clients, size = batch.y.shape
    owner = torch.arange(clients, device=batch.y.device).repeat_interleave(size)
    alone = Batch(
        x=batch.x.flatten(0, 1).unsqueeze(1),
        y=batch.y.reshape(-1, 1),
        weight=torch.ones_like(batch.weight).reshape(-1, 1),
    )
    if batch.held is not None:
        alone = replace(alone, held=batch.held.repeat_interleave(size))
    each = of_records(owner, alone)
    squares_R = torch.stack([g.flatten(1).square().sum(1) for g in each.values()]).sum(0)
    kept_R = (norm / squares_R.sqrt().clamp(min=torch.finfo(squares_R.dtype).tiny)).clamp(max=1.0)
    # an empty slot has some record's gradient, and weighs nothing
    share_GB = kept_R.view(clients, size) * batch.weight
    return {
        name: torch.einsum("gb,gb...->g...", share_GB, g.unflatten(0, (clients, size)))
        for name, g in each.items()
    }


def _within(phase: Phase, skipped: int) -> tuple[int, int]:
    """Return what tells the phases of a round apart; those of one model differ in what they skip."""
    from zlib import crc32

    return (crc32(phase.model.encode()), skipped)


def _padded(drawn: list[list[np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of every client's samples, [T, G, B], and which slots are not empty."""
    steps = max(len(each) for each in drawn)
    size = max((len(rows) for each in drawn for rows in each), default=0)
    rows_TGB = np.zeros((steps, len(drawn), max(1, size)), dtype=np.int64)
    taken_TGB = np.zeros(rows_TGB.shape)
    for g, each in enumerate(drawn):
        for t, rows in enumerate(each):
            rows_TGB[t, g, : len(rows)] = rows
            taken_TGB[t, g, : len(rows)] = 1
    return rows_TGB, taken_TGB
