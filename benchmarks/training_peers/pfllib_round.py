"""FedProto organised as in PFLlib: an object per client, a module, a DataLoader over its records, Python per record.

Prototypes are collected in a pass of their own over the loader, record by record, and travel as a dict per client. A
batch's targets are filled in record by record. Structure after PFLlib (Zhang et al., 2023).
The optimiser is PFLlib's, SGD; the order of a round is privkit's.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler

from benchmarks.federation import Federation
from benchmarks.training_peers.modules import Model, to_privkit
from privkit.methods._base import LocalTraining
from privkit.train.cohort import Client

Prototypes = dict[int, Tensor]
Loader = DataLoader[tuple[Tensor, Tensor]]


class Order(Sampler[int]):
    """Yields records in the order that was set, so that both sides see the same batches."""

    def __init__(self, rows: Sequence[int]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


class ProtoClient:
    """One client: its records as a list of pairs, its module, its optimiser."""

    def __init__(self, given: Federation, client: Client, training: LocalTraining, pull: float) -> None:
        self.index, self.pull, self.given, self.training = client.index, pull, given, training
        self.model = Model.of(given)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=training.learning_rate)
        self.ce, self.mse = nn.CrossEntropyLoss(), nn.MSELoss()
        self.records, self.tests = _pairs(client.x, client.y), _pairs(client.x_test, client.y_test)
        self.global_prototypes: Prototypes = {}

    def batches(self, rows: Sequence[int]) -> Loader:
        return DataLoader(self.records, self.training.batch_size, sampler=Order(rows))  # type: ignore[arg-type]

    def test_batches(self) -> Loader:
        return DataLoader(self.tests, self.training.batch_size)  # type: ignore[arg-type]

    @torch.no_grad()
    def collect(self) -> Prototypes:
        """Return the mean embedding of each class, from a pass over the loader."""
        found: dict[int, list[Tensor]] = defaultdict(list)
        for x, y in self.batches(range(len(self.records))):
            rep = self.model.base(x)
            for i, label in enumerate(y):
                found[label.item()].append(rep[i, :].detach())
        return {label: torch.stack(vectors).mean(0) for label, vectors in found.items()}

    def train(self, round: int) -> None:
        for rows in self.given.order(self.index, round, epochs=self.training.epochs):
            for x, y in self.batches(rows.tolist()):
                rep = self.model.base(x)
                loss = self.ce(self.model.head(rep), y)
                target = rep.detach().clone()
                for i, label in enumerate(y):
                    if label.item() in self.global_prototypes:
                        target[i, :] = self.global_prototypes[label.item()]
                loss = loss + self.pull * self.mse(target, rep)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


def _pairs(x: np.ndarray, y: np.ndarray) -> list[tuple[Tensor, Tensor]]:
    return [(torch.from_numpy(one), torch.tensor(label)) for one, label in zip(x, y.tolist(), strict=True)]


class ProtoServer:
    """All clients, trained one after the other."""

    def __init__(self, given: Federation, training: LocalTraining, pull: float) -> None:
        self.clients = [ProtoClient(given, client, training, pull) for client in given.clients]
        self.prototypes: Prototypes = {}
        self.rounds = 0

    def round(self) -> None:
        """Collect, aggregate, send, train."""
        self.prototypes = aggregated([client.collect() for client in self.clients])
        for client in self.clients:
            client.global_prototypes = self.prototypes
            client.train(self.rounds)
        self.rounds += 1

    def named(self) -> list[dict[str, np.ndarray]]:
        return [to_privkit(dict(client.model.named_parameters())) for client in self.clients]


def aggregated(each: Sequence[Prototypes]) -> Prototypes:
    """Return the plain mean of every class over the clients that hold it."""
    found: dict[int, list[Tensor]] = defaultdict(list)
    for prototypes in each:
        for label, vector in prototypes.items():
            found[label].append(vector)
    return {label: torch.stack(vectors).mean(0) for label, vectors in found.items()}
