"""VPDR's local training organised as in its code: FedProto with the published loss, and DCR, client by client.

A batch's prototypes are stacked one record after the other into shape [B, 1, d], and ``mse_loss`` subtracts them from
embeddings of shape [B, d]: it broadcasts to [B, B, d], warns, and the published code silences the warning. DCR scales
embeddings by ``min(1, R / (|z| + gamma R))``; a copy of the head that follows it teaches with factor ``tau ** 2``,
after five steps. Written from the paper's Section 4.3 and a description of the code; dropout is off.
"""

import copy
import warnings
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.federation import Federation
from benchmarks.training_peers.modules import Model, to_privkit
from benchmarks.training_peers.pfllib_round import Order
from privkit.defenses._distillation import ClippingRegularization
from privkit.methods._base import LocalTraining
from privkit.train.cohort import Client


class VpdrClient:
    """One client with model, teacher, loader and optimiser."""

    def __init__(
        self,
        given: Federation,
        client: Client,
        training: LocalTraining,
        pull: float,
        rule: ClippingRegularization | None,
    ) -> None:
        self.given, self.index, self.training, self.pull, self.rule = (
            given,
            client.index,
            training,
            pull,
            rule,
        )
        self.model, self.teacher, self.steps = Model.of(given), None, 0
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay
        )
        records = TensorDataset(torch.from_numpy(client.x), torch.from_numpy(client.y))
        self.order = Order(range(len(client.y)))
        self.loader = DataLoader(records, training.batch_size, sampler=self.order)

    @torch.no_grad()
    def encode(self) -> dict[int, Tensor]:
        """Return the mean embedding of each class, shape [1, d]."""
        found: dict[int, list[Tensor]] = defaultdict(list)
        self.order.rows = range(len(self.order))
        for x, y in self.loader:
            z = self.model.base(x)
            for i, label in enumerate(y):
                found[label.item()].append(z[i, :].detach())
        return {
            label: as_sent(torch.stack(vectors).mean(0, keepdim=True)) for label, vectors in found.items()
        }

    def update(self, round: int, prototypes: dict[int, Tensor]) -> None:
        """Train for one round."""
        for x, y in self._batches(round):
            z = self.model.base(x)
            u = z if self.rule is None else softly_clipped(z, self.rule)
            targets = torch.stack([prototypes[int(label)] for label in y])
            logits = self.model.head(u)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = functional.cross_entropy(logits, y) + self.pull * functional.mse_loss(u, targets)
            if self.rule is not None and self.steps >= self.rule.warm_up:
                loss = loss + self.rule.weight * self._distillation(logits, z, self.rule.temperature)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self._teach()

    def _batches(self, round: int) -> Iterator[tuple[Tensor, Tensor]]:
        for rows in self.given.order(self.index, round, epochs=self.training.epochs):
            self.order.rows = rows.tolist()
            yield from self.loader

    def _distillation(self, logits: Tensor, z: Tensor, temperature: float) -> Tensor:
        with torch.no_grad():
            taught = self._teacher()(z)
        student, teacher = (functional.log_softmax(one / temperature, dim=1) for one in (logits, taught))
        divergence = functional.kl_div(student, teacher, reduction="batchmean", log_target=True)
        return temperature**2 * divergence

    def _teacher(self) -> torch.nn.Module:
        if self.teacher is None:
            self.teacher = copy.deepcopy(self.model.head)
        return self.teacher

    @torch.no_grad()
    def _teach(self) -> None:
        """Move the teacher towards the head, once training is warm."""
        if self.rule is not None and self.steps >= self.rule.warm_up:
            for kept, p in zip(self._teacher().parameters(), self.model.head.parameters(), strict=True):
                kept.mul_(self.rule.momentum).add_(p, alpha=1 - self.rule.momentum)
        self.steps += 1


def as_sent(vector: Tensor) -> Tensor:
    """Return a message's numbers: float32 on both sides, also where all else is computed in float64."""
    return vector.float().to(vector.dtype)


def softly_clipped(z: Tensor, rule: ClippingRegularization) -> Tensor:
    factor = rule.radius / (z.norm(dim=1, keepdim=True) + rule.softness * rule.radius)
    return z * torch.clamp(factor, max=1.0)


class VpdrServer:
    """All clients, one after the other."""

    def __init__(
        self,
        given: Federation,
        training: LocalTraining,
        pull: float,
        rule: ClippingRegularization | None = None,
    ) -> None:
        self.clients = [VpdrClient(given, client, training, pull, rule) for client in given.clients]
        self.sizes, self.rounds = [len(client.y) for client in given.clients], 0

    def round(self) -> None:
        """Encode, average by size, send, train."""
        self.train(self.averaged([client.encode() for client in self.clients]))

    def averaged(self, sent: list[dict[int, Tensor]]) -> dict[int, Tensor]:
        """Return prototypes weighted by clients' shares of all records."""
        found: dict[int, Tensor] = {}
        for prototypes, size in zip(sent, self.sizes, strict=True):
            for label, vector in prototypes.items():
                found[label] = found.get(label, torch.zeros_like(vector)) + size / sum(self.sizes) * vector
        return {label: as_sent(vector) for label, vector in found.items()}

    def train(self, prototypes: dict[int, Tensor]) -> None:
        for client in self.clients:
            client.update(self.rounds, prototypes)
        self.rounds += 1

    def named(self) -> list[dict[str, np.ndarray]]:
        return [to_privkit(dict(client.model.named_parameters())) for client in self.clients]
