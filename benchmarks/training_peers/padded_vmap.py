"""Local training of all clients by ``torch.func.vmap`` over one model, padded to the largest client's steps.

The textbook way to stack clients: every client takes part in every step; one that has run out of batches gets weights
of zero, and is put back to where it was.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from benchmarks.federation import Federation
from benchmarks.training_peers.modules import Model, to_privkit
from privkit.methods._base import LocalTraining


class Padded:
    """Clients of any sizes, stacked and padded."""

    def __init__(self, given: Federation, training: LocalTraining) -> None:
        self.given, self.training, self.rounds = given, training, 0
        self.model = Model.of(given)
        start = {name: p.detach() for name, p in self.model.named_parameters()}
        self.params = {n: p.expand(len(given.clients), *p.shape).clone() for n, p in start.items()}
        self.first = {n: torch.zeros_like(p) for n, p in self.params.items()}
        self.second = {n: torch.zeros_like(p) for n, p in self.params.items()}
        self.steps_G = torch.zeros(len(given.clients))
        self.x, self.y = self._padded()
        self.gradients = vmap(grad(self._loss))

    def _padded(self) -> tuple[Tensor, Tensor]:
        clients, longest = self.given.clients, max(len(c.y) for c in self.given.clients)
        x = torch.zeros(len(clients), longest, self.given.dim, dtype=torch.from_numpy(clients[0].x).dtype)
        y = torch.zeros(len(clients), longest, dtype=torch.int64)
        for g, client in enumerate(clients):
            x[g, : len(client.y)], y[g, : len(client.y)] = map(torch.from_numpy, (client.x, client.y))
        return x, y

    def _loss(self, params: Mapping[str, Tensor], x_Bd: Tensor, y_B: Tensor, weight_B: Tensor) -> Tensor:
        logits_BC = functional_call(self.model, dict(params), (x_Bd,))
        return (functional.cross_entropy(logits_BC, y_B, reduction="none") * weight_B).sum()

    def _batches(self) -> tuple[Tensor, Tensor]:
        """Return rows and weights of every step, shape [steps, G, B]."""
        size, epochs = self.training.batch_size, self.training.epochs
        steps = epochs * max(-(-len(client.y) // size) for client in self.given.clients)
        rows = np.zeros((steps, len(self.given.clients), size), dtype=np.int64)
        weights = np.zeros(rows.shape)
        for g, client in enumerate(self.given.clients):
            step = 0
            for order in self.given.order(client.index, self.rounds, epochs=epochs):
                for chosen in np.split(order, range(size, len(order), size)):
                    rows[step, g, : len(chosen)] = chosen
                    weights[step, g, : len(chosen)] = 1 / len(chosen)
                    step += 1
        return torch.from_numpy(rows), torch.from_numpy(weights).to(self.x.dtype)

    def round(self) -> None:
        """Train every client for one round."""
        clients = torch.arange(len(self.given.clients)).unsqueeze(1)
        for rows_GB, weight_GB in zip(*self._batches(), strict=True):
            batch = self.x[clients, rows_GB], self.y[clients, rows_GB]
            self._step(self.gradients(self.params, *batch, weight_GB), weight_GB.sum(1) > 0)
        self.rounds += 1

    def _step(self, gradients: Mapping[str, Tensor], goes_on_G: Tensor) -> None:
        """Take a step of AdamW with each client that goes on."""
        rate, decay = self.training.learning_rate, self.training.weight_decay
        self.steps_G += goes_on_G
        for name, p in self.params.items():
            on, steps = (t.view(-1, *[1] * (p.ndim - 1)) for t in (goes_on_G, self.steps_G.to(p.dtype)))
            steps = steps.clamp(min=1)
            m = torch.where(on, 0.9 * self.first[name] + 0.1 * gradients[name], self.first[name])
            v = torch.where(on, 0.999 * self.second[name] + 0.001 * gradients[name] ** 2, self.second[name])
            size = (v / (1 - 0.999**steps)).sqrt() + 1e-8
            moved = p * (1 - rate * decay) - rate * m / (1 - 0.9**steps) / size
            self.params[name] = torch.where(on, moved, p)
            self.first[name], self.second[name] = m, v

    def named(self) -> list[dict[str, np.ndarray]]:
        """Return every client's parameters under privkit's names."""
        return [
            to_privkit({name: p[g] for name, p in self.params.items()})
            for g in range(len(self.given.clients))
        ]
