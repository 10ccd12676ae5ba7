"""The clients of a batch of runs, stacked: every tensor has a leading client axis of size G.

Clients are ordered by their number of records, largest first, so that those which still have a batch at
step t are a prefix: nothing is padded in time, whatever the sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from privkit.noise import Purpose, keyed


@dataclass(frozen=True, eq=False, kw_only=True)
class Client:
    """One client of one run: its features, already encoded.

    Attributes:
        run: index of its run in the batch.
        index: its number within the run.
        seed: of its run.
        x, y: training records, [n, d] and [n].
        x_test, y_test: test records of the same domain, [t, d] and [t].
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
    """Stacked clients; ``n`` and ``n_test`` say how many rows of each are real.

    Attributes:
        clients: in stacked order.
        x, y, n: training records, [G, n_max, d], [G, n_max], [G].
        x_test, y_test, n_test: test records likewise.
    """

    clients: tuple[Client, ...]
    x: Tensor
    y: Tensor
    n: np.ndarray
    x_test: Tensor
    y_test: Tensor
    n_test: np.ndarray

    @classmethod
    def stack(cls, clients: Sequence[Client], device: torch.device) -> "Cohort":
        """Return the clients stacked, largest first."""
        order = sorted(clients, key=lambda c: (-len(c.y), c.run, c.index))
        x, y, n = _pad([c.x for c in order], [c.y for c in order], device)
        x_test, y_test, n_test = _pad([c.x_test for c in order], [c.y_test for c in order], device)
        return cls(tuple(order), x, y, n, x_test, y_test, n_test)

    def batches(self, round: int, *, epochs: int, size: int) -> tuple[Tensor, Tensor, np.ndarray]:
        """Return the round's mini-batches.

        Each client's order is keyed by (seed, round, client), so it does not depend on its neighbours.

        Returns:
            rows: record of each slot, shape [steps, G, size] (0 where a slot is empty).
            weights: of each slot, the same shape; each non-empty row sums to 1.
            active: clients that still have a batch at each step, shape [steps]; a prefix of the axis.
        """
        per_client = [-(-int(n) // size) * epochs for n in self.n]
        rows = np.zeros((max(per_client), len(self.n), size), dtype=np.int64)
        weights = np.zeros(rows.shape, dtype=np.float32)
        for g, client in enumerate(self.clients):
            rng = keyed(client.seed, Purpose.BATCHES, round=round, client=client.index)
            step = 0
            for _ in range(epochs):
                order = rng.permutation(int(self.n[g]))
                for start in range(0, len(order), size):
                    chosen = order[start : start + size]
                    rows[step, g, : len(chosen)] = chosen
                    weights[step, g, : len(chosen)] = 1.0 / len(chosen)
                    step += 1
        active = (np.arange(len(rows))[:, None] < np.array(per_client)).sum(1)
        device = self.x.device
        return torch.from_numpy(rows).to(device), torch.from_numpy(weights).to(device), active


def _pad(
    xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], device: torch.device
) -> tuple[Tensor, Tensor, np.ndarray]:
    n = np.array([len(y) for y in ys])
    x = np.zeros((len(xs), int(n.max()), xs[0].shape[1]), dtype=np.float32)
    y = np.zeros(x.shape[:2], dtype=np.int64)
    for g, (rows, labels) in enumerate(zip(xs, ys, strict=True)):
        x[g, : len(labels)], y[g, : len(labels)] = rows, labels
    return torch.from_numpy(x).to(device), torch.from_numpy(y).to(device), n
