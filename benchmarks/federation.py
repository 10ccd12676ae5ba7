"""Synthetic federations on cached features, and a round of privkit's own engine on them.

A round is what the training loop does with it, but for the files: embed and release, merge, answer, train, test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from accountant.contract import DependsOn
from privkit.defenses._base import Mechanism
from privkit.defenses._local import AsPublished, LocalRule
from privkit.defenses.none import PlainMeans
from privkit.embeddings import Embeddings
from privkit.methods._base import AbstractMethod, Sends, State
from privkit.methods._down import Down
from privkit.network import Network
from privkit.noise import NoNoise, Purpose, keyed
from privkit.personal import PersonalModel
from privkit.release import Payload, Update
from privkit.servers.honest import HonestServer
from privkit.train.answers import stacked_answers
from privkit.train.cohort import Client, Cohort
from privkit.train.local import Fleet
from privkit.train.memory import keep_freed_memory

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False, kw_only=True)
class Federation:
    """Clients with what they train.

    Attributes:
        clients: with their features.
        num_classes, dim: of the problem.
        model: adapter and head.
        start: initial parameters, by privkit's names, without client axis.
    """

    clients: tuple[Client, ...]
    num_classes: int
    dim: int
    model: PersonalModel
    start: Mapping[str, np.ndarray]

    @classmethod
    def of(
        cls, sizes: Sequence[int], *, dim: int, num_classes: int, model: PersonalModel, tests: int = 0
    ) -> "Federation":
        """Return clients of so many training records each, and ``tests`` test records of all together."""
        rng = np.random.default_rng(0)
        means = rng.normal(size=(num_classes, dim))
        each = max(1, tests // len(sizes))
        return cls(
            clients=tuple(_client(rng, means, g, n, each) for g, n in enumerate(sizes)),
            num_classes=num_classes,
            dim=dim,
            model=model,
            start=Network(model).start(dim=dim, num_classes=num_classes, seed=0),
        )

    def double(self) -> "Federation":
        """Return the same clients in float64, in which sides that compute the same thing stay together."""
        clients = [
            replace(c, x=c.x.astype(np.float64), x_test=c.x_test.astype(np.float64)) for c in self.clients
        ]
        start = {name: p.astype(np.float64) for name, p in self.start.items()}
        return replace(self, clients=tuple(clients), start=start)

    def order(self, client: int, round: int, *, epochs: int) -> list[np.ndarray]:
        """Return the order in which a client visits its records, epoch by epoch, as privkit draws it."""
        rng = keyed(0, Purpose.BATCHES, round=round, client=client)
        return [rng.permutation(len(self.clients[client].y)) for _ in range(epochs)]


def _client(rng: np.random.Generator, means: np.ndarray, index: int, size: int, tests: int) -> Client:
    y, y_test = (rng.permutation(np.arange(n) % len(means)) for n in (size, tests))
    x, x_test = (
        (means[labels] + 2.0 * rng.normal(size=(len(labels), means.shape[1]))).astype(np.float32)
        for labels in (y, y_test)
    )
    return Client(run=0, index=index, seed=0, x=x, y=y, x_test=x_test, y_test=y_test)


class Engine:
    """privkit's engine on a federation: :class:`~privkit.train.local.Fleet`, a method, a mechanism and a server."""

    def __init__(
        self,
        given: Federation,
        method: AbstractMethod,
        *,
        rule: LocalRule | None = None,
        mechanism: Mechanism | None = None,
    ) -> None:
        keep_freed_memory()
        self.given, self.method, self.server = given, method, HonestServer()
        self.mechanism = PlainMeans() if mechanism is None else mechanism
        start = method.first(dict(given.start), seed=0)
        stacked = {n: torch.from_numpy(np.stack([p] * len(given.clients))) for n, p in start.items()}
        cohort = Cohort.stack(given.clients, CPU)
        self.fleet = Fleet.start(
            Network(given.model),
            cohort,
            stacked,
            training=method.training,
            rule=rule or AsPublished(),
            method=method,
        )
        self.state: State = method.start(dim=given.dim, num_classes=given.num_classes, seed=0)
        self.rounds = 0

    def round(self, *, test: bool = False) -> list[float]:
        """Release, merge, answer and train; return every client's accuracy if ``test``, in stacked order."""
        down = self.exchange()
        self.train(down)
        return self.fleet.accuracy(self.method, down, num_classes=self.given.num_classes) if test else []

    def exchange(self) -> Down:
        """Release, merge and answer."""
        self.state = self.server.merge(self.method, self.state, self._uploads())
        each = [self.server.down(self.method, self.state, c.index) for c in self.fleet.cohort.clients]
        shared = [self.server.shared(self.method, self.state)]
        return stacked_answers(each, shared, self.fleet.cohort.runs)

    def train(self, down: Down) -> None:
        """Train every client for one round."""
        self.fleet.train_round(self.rounds, self.method, down)
        self.rounds += 1

    def _uploads(self) -> dict[int, Payload]:
        uploads: dict[int, Payload] = {}
        if self.method.sends is Sends.WEIGHTS:
            classes = self.given.num_classes
            sent = self.fleet.weights(self.method, num_classes=classes, trained=self.rounds > 0)
            for client, mine in zip(self.fleet.cohort.clients, sent, strict=True):
                uploads[client.index] = Update(named=mine.named, means="weights")
        embedded = self.fleet.released(self.method) if self.method.sends is Sends.PROTOTYPES else []
        for z, client in zip(embedded, self.fleet.cohort.clients, strict=False):
            mine = Embeddings(vectors=z, labels=client.y, encoder=DependsOn.PRIVATE_STATE)
            uploads[client.index] = self.mechanism.privatize(mine, NoNoise()).payload
        return uploads

    def named(self) -> list[dict[str, np.ndarray]]:
        """Return every client's parameters, in the order of their numbers."""
        index = [client.index for client in self.fleet.cohort.clients]
        order = np.argsort(index)
        return [{name: p[g].numpy() for name, p in self.fleet.params.items()} for g in order]


def farthest(ours: Sequence[Mapping[str, np.ndarray]], theirs: Sequence[Mapping[str, np.ndarray]]) -> float:
    """Return the largest distance between equally named numbers."""
    return max(
        float(np.abs(mine[name] - other[name]).max())
        for mine, other in zip(ours, theirs, strict=True)
        for name in mine
    )
