"""The clients of a batch of runs, stacked: every tensor has a leading client axis of size G.

Clients are ordered by their number of records, largest first, so that those which still have a batch at
step t are a prefix: nothing is padded in time, whatever the sizes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privkit.network import Drops, nothing_dropped
from privkit.noise import Purpose, keyed


@dataclass(frozen=True, eq=False, kw_only=True)
class Client:
    """One client of one run, with what its network reads: features, already encoded, or pixels.

    Attributes:
        run: index of its run in the batch.
        index: its number within the run.
        seed: of its run.
        x, y: training records, [n, ...] and [n].
        x_test, y_test: test records, [t, ...] and [t]; clients with the same ones hold the same arrays.
    """

    run: int
    index: int
    seed: int
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True, eq=False)
class Cohort:
    """Stacked clients; ``n`` says how many training rows of each are real.

    Attributes:
        clients: in stacked order.
        x, y, n: training records, [G, n_max, ...], [G, n_max] (-1 where a row is empty), [G].
    """

    clients: tuple[Client, ...]
    x: Tensor
    y: Tensor
    n: np.ndarray

    @classmethod
    def stack(cls, clients: Sequence[Client], device: torch.device) -> "Cohort":
        """Return the clients stacked, largest first."""
        order = sorted(clients, key=lambda c: (-len(c.y), c.run, c.index))
        x, y = _padded([(c.x, c.y) for c in order], device)
        return cls(tuple(order), x, y, np.array([len(c.y) for c in order]))

    def of(self, chosen: Tensor) -> "Cohort":
        """Return the clients of some ascending numbers, their records copied."""
        rows = chosen.cpu().numpy()
        clients = tuple(self.clients[g] for g in rows.tolist())
        return Cohort(clients, self.x[chosen], self.y[chosen], self.n[rows])

    @property
    def runs(self) -> Tensor:
        """Return the run of each client."""
        return torch.tensor([client.run for client in self.clients], device=self.x.device)

    def tests(self, *, most: int) -> list[tuple[slice, Tensor, Tensor]]:
        """Return all test records: at most ``most`` at a time, of several clients or some of one.

        Clients with the same records share the memory for them.

        Returns:
            clients, x of shape [g, t, ...] and y of shape [g, t], -1 where a row is empty.
        """
        held: dict[int, tuple[Tensor, Tensor]] = {}
        longest = max(len(client.y_test) for client in self.clients)
        found = []
        for part in slices(len(self.clients), most=most // longest):
            x, y = self._tests_of(self.clients[part], held)
            chunks = zip(x.split(most, dim=1), y.split(most, dim=1), strict=True)
            found += [(part, *chunk) for chunk in chunks]
        return found

    def _tests_of(
        self, clients: Sequence[Client], held: dict[int, tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        first = clients[0]
        if any(client.x_test is not first.x_test for client in clients):
            return _padded([(client.x_test, client.y_test) for client in clients], self.x.device)
        if id(first.x_test) not in held:
            held[id(first.x_test)] = _padded([(first.x_test, first.y_test)], self.x.device)
        x, y = held[id(first.x_test)]
        return x.expand(len(clients), *x.shape[1:]), y.expand(len(clients), -1)

    def rows(self, *, most: int) -> Iterator[tuple[slice, tuple[Tensor, ...]]]:
        """Yield the training records of some clients at a time, in pieces of at most ``most`` records."""
        for part in slices(len(self.clients), most=most // self.x.shape[1]):
            yield part, self.x[part, : self.n[part].max()].split(most, dim=1)

    def drops(self, round: int, share: float) -> Callable[[slice], Drops]:
        """Return, for some of the clients, what leaves out a share of hidden units in a round's steps.

        Each client's units are keyed by (seed, round, client) and drawn step by step, whoever its neighbours are.
        """
        if not share:
            return lambda clients: nothing_dropped
        streams = [
            keyed(client.seed, Purpose.DROPOUT, round=round, client=client.index) for client in self.clients
        ]
        return lambda clients: _dropping(streams[clients], share)

    def normals(self, round: int, shape: tuple[int, ...] | None) -> Callable[[slice], Tensor | None]:
        """Return, for some of the clients, what draws standard normal numbers of a shape for each of a round's steps.

        Each client's numbers are keyed by (seed, round, client) and drawn step by step, whoever its neighbours are.
        """
        if shape is None:
            return lambda clients: None
        streams = [
            keyed(client.seed, Purpose.LOCAL_NORMALS, round=round, client=client.index)
            for client in self.clients
        ]

        def drawn(clients: slice) -> Tensor:
            each = np.stack([stream.standard_normal(shape, np.float32) for stream in streams[clients]])
            return torch.from_numpy(each).to(self.x.device)

        return drawn

    def batches(
        self,
        round: int,
        *,
        epochs: int,
        size: int,
        skipped: int = 0,
        share: float = 1.0,
        purpose: Purpose = Purpose.BATCHES,
    ) -> tuple[Tensor, Tensor, np.ndarray]:
        """Return the round's mini-batches.

        Each client's order is keyed by (seed, round, client), so it does not depend on its neighbours.

        Args:
            round: whose mini-batches.
            epochs: passes.
            size: slots of a mini-batch.
            skipped: passes of the same stream before these.
            share: of each client's records that take part, in (0, 1]; at least one record does.
            purpose: of the stream.

        Returns:
            rows: record of each slot, shape [steps, G, size] (0 where a slot is empty).
            weights: of each slot, the same shape; each non-empty row sums to 1.
            active: clients that still have a batch at each step, shape [steps]; a prefix of the axis.
        """
        taken = np.maximum((share * self.n).astype(np.int64), 1)
        steps = -(-taken // size)
        rows = np.zeros((len(self.n), max(steps) * epochs, size), dtype=np.int64)
        for g, (row, client, n, held) in enumerate(
            zip(rows, self.clients, taken.tolist(), steps.tolist(), strict=True)
        ):
            rng = keyed(client.seed, purpose, round=round, client=client.index)
            for _ in range(skipped):
                rng.permutation(self.n[g])
            for epoch in row[: epochs * held].reshape(epochs, -1):
                epoch[:n] = rng.permutation(self.n[g])[:n]
        weights = np.zeros(rows.shape)
        for n in np.unique(taken).tolist():
            once = _weights(n, size)
            weights[taken == n, : epochs * len(once)] = np.tile(once, (epochs, 1))
        active = (np.arange(rows.shape[1])[:, None] < steps * epochs).sum(1)
        dtype = self.x.dtype if self.x.is_floating_point() else torch.float32
        rows_TGB = torch.from_numpy(rows).to(self.x.device).transpose(0, 1)
        weights_TGB = torch.from_numpy(weights).to(self.x.device, dtype).transpose(0, 1)
        return rows_TGB, weights_TGB, active


def slices(clients: int, *, most: int) -> Iterator[slice]:
    """Yield slices that cover so many clients, of ``most`` each and at least one."""
    step = max(1, most)
    for start in range(0, clients, step):
        yield slice(start, min(clients, start + step))


def _weights(records: int, size: int) -> np.ndarray:
    """Return the weight of every slot of an epoch's batches, shape [steps, size]."""
    held = np.minimum(records - np.arange(0, records, size), size)
    return (np.arange(size) < held[:, None]) / held[:, None]


def _dropping(streams: Sequence[np.random.Generator], share: float) -> Drops:
    def dropped(h: Tensor) -> Tensor:
        kept = np.stack([stream.random(h.shape[1:], np.float32) >= share for stream in streams])
        return h * torch.from_numpy(kept / np.float32(1 - share)).to(h.device, h.dtype)

    return dropped


def _padded(pairs: Sequence[tuple[np.ndarray, np.ndarray]], device: torch.device) -> tuple[Tensor, Tensor]:
    first, longest = pairs[0][0], max(len(y) for _, y in pairs)
    x = np.zeros((len(pairs), longest, *first.shape[1:]), dtype=first.dtype)
    y = np.full(x.shape[:2], -1, dtype=np.int64)
    for g, (rows, labels) in enumerate(pairs):
        x[g, : len(labels)], y[g, : len(labels)] = rows, labels
    return torch.from_numpy(x).to(device), torch.from_numpy(y).to(device)
