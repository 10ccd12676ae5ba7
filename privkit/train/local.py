"""Local training and testing of clients that share an architecture, as one batch of tensor operations."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from accountant.contract import DependsOn
from privkit.batch import Batch
from privkit.config import Precision
from privkit.defenses._local import LocalRule
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod
from privkit.methods._down import Down
from privkit.network import Network
from privkit.train.cohort import Cohort
from privkit.train.optimizer import StackedAdamW
from privkit.weights import Weights

_AT_ONCE = 16_384  # records that are embedded together when nothing is trained


@dataclass(eq=False)
class Fleet:
    """Clients of one architecture, stacked, with everything that local training changes.

    Attributes:
        network: what is trained.
        cohort: the clients and their records.
        params: by name, each with the client axis first.
        optimizer: its memory.
        rule: what the defense changes in local training.
        memory: the rule's.
        precision: of the arithmetic; parameters are kept in float32.
    """

    network: Network
    cohort: Cohort
    params: dict[str, Tensor]
    optimizer: StackedAdamW
    rule: LocalRule
    memory: dict[str, Tensor]
    precision: Precision = Precision.FP32

    @classmethod
    def start(
        cls,
        network: Network,
        cohort: Cohort,
        params: Mapping[str, Tensor],
        *,
        rule: LocalRule,
        precision: Precision = Precision.FP32,
    ) -> "Fleet":
        """Return clients that have not trained yet; ``params`` has the client axis in the cohort's order."""
        own = dict(params)
        return cls(network, cohort, own, StackedAdamW.start(own), rule, rule.memory(own), precision)

    def stacked(self) -> dict[str, dict[str, Tensor]]:
        """Return every tensor that training changes, by what it is and by name; each has the client axis first."""
        return {
            "params": self.params,
            "first": self.optimizer.first,
            "second": self.optimizer.second,
            "steps": {"all": self.optimizer.steps},
            "rule": self.memory,
        }

    def state_of(self, run: int) -> dict[str, np.ndarray]:
        """Return everything that training changes of one run's clients, in the order of their numbers."""
        order = torch.tensor(sorted(self._of_run(run), key=lambda g: self.cohort.clients[g].index))
        return {
            f"{kind}.{name}": tensor[order].cpu().numpy()
            for kind, tensors in self.stacked().items()
            for name, tensor in tensors.items()
        }

    def restore(self, run: int, saved: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`state_of` returned."""
        order = sorted(self._of_run(run), key=lambda g: self.cohort.clients[g].index)
        for kind, tensors in self.stacked().items():
            for name, tensor in tensors.items():
                tensor[order] = torch.from_numpy(saved[f"{kind}.{name}"]).to(tensor.device)

    def _of_run(self, run: int) -> list[int]:
        return [g for g, client in enumerate(self.cohort.clients) if client.run == run]

    def weights(self, g: int, method: AbstractMethod) -> Weights:
        """Return the parameters that one client would send."""
        named = {n: p[g].cpu().numpy() for n, p in self.params.items() if method.sends_weight(n)}
        return Weights(named=named, depends_on=DependsOn.PRIVATE_STATE)

    def arithmetic(self) -> AbstractContextManager[object]:
        """Return the context that forward passes run in."""
        device = self.cohort.x.device.type
        return torch.autocast(device, torch.bfloat16, enabled=self.precision is Precision.BF16)

    @torch.no_grad()
    def released(self, method: AbstractMethod) -> list[np.ndarray]:
        """Return the embeddings that each client makes its release from, float64 of shape [n, d]."""
        found: list[np.ndarray] = []
        for part, x in self.cohort.rows(most=_AT_ONCE):
            with self.arithmetic():
                z = method.released(self.network, self._of(part), x)
            found += list(z.double().cpu().numpy())
        return [z[: len(client.y)] for z, client in zip(found, self.cohort.clients, strict=True)]

    @torch.no_grad()
    def accuracy(self, method: AbstractMethod, down: Down, *, num_classes: int) -> list[float]:
        """Return each client's share of its own test records that are classified right, in stacked order."""
        own = self._recalled(method, num_classes)
        found: list[float] = []
        for part, x, y in self.cohort.tests(most=_AT_ONCE):
            mine = {name: tensor[part] for name, tensor in own.items()}
            with self.arithmetic():
                logits = method.logits(self.network, self._of(part), x, down.part(part), mine)
            right = (logits.argmax(-1) == y).sum(1)
            found += (right.cpu().numpy() / (y >= 0).sum(1).cpu().numpy()).tolist()
        return found

    def _recalled(self, method: AbstractMethod, num_classes: int) -> dict[str, Tensor]:
        """Return what every client keeps of its own records to classify with."""
        found: dict[str, list[Tensor]] = {}
        for part, x in self.cohort.rows(most=_AT_ONCE):
            with self.arithmetic():
                z = self.network.embed(self._of(part), x)
            kept = method.recall(z.float(), self.cohort.y[part], num_classes=num_classes)
            for name, tensor in kept.items():
                found.setdefault(name, []).append(tensor)
        return {name: torch.cat(parts) for name, parts in found.items()}

    def _of(self, part: slice) -> dict[str, Tensor]:
        return {name: p[part] for name, p in self.params.items()}

    def train_round(self, round: int, method: AbstractMethod, down: Down) -> None:
        """Train every client for one round, in place.

        Clients own disjoint slices, so the gradient of the summed loss is every client's own gradient.

        Raises:
            InputError: a parameter is no longer finite.
        """
        setup = method.training
        method.receive(self.params, down)
        rows, weights, active = self.cohort.batches(round, epochs=setup.epochs, size=setup.batch_size)
        network = self._in_training(round)
        for step, k in enumerate(active.tolist()):
            batch = _batch(self.cohort, rows[step, :k], weights[step, :k])
            gradients = self._gradients(network.step(), method, batch, down.first(k))
            self.optimizer.step(
                self.params,
                gradients,
                active=k,
                learning_rate=setup.learning_rate,
                weight_decay=setup.weight_decay,
            )
            self.rule.after_step(self.params, self.memory, active=k)
        self._refuse_divergence(round)

    def _in_training(self, round: int) -> Network:
        share = self.network.settings.dropout
        return self.network.training(self.cohort.drops(round, share)) if share else self.network

    def _gradients(
        self, network: Network, method: AbstractMethod, batch: Batch, down: Down
    ) -> dict[str, Tensor]:
        k = len(batch.y)
        live = {name: p[:k].detach().requires_grad_(True) for name, p in self.params.items()}
        kept = {name: m[:k] for name, m in self.memory.items()}
        with self.arithmetic():
            z_GBd = network.embed(live, batch.x)
            u_GBd = self.rule.bound(z_GBd)
            loss = method.loss(network, live, u_GBd, batch, down)
            loss = loss + self.rule.loss(network, live, kept, z_GBd, u_GBd, batch)
        if not loss.requires_grad:
            return {}
        found = torch.autograd.grad(loss.sum(), list(live.values()), allow_unused=True)
        return {name: g for name, g in zip(live, found, strict=True) if g is not None}

    def _refuse_divergence(self, round: int) -> None:
        for name, p in self.params.items():
            finite_G = p.flatten(1).isfinite().all(1).tolist()
            if not all(finite_G):
                client = self.cohort.clients[finite_G.index(False)]
                raise InputError(
                    f"training diverged: {name} of client {client.index} (seed {client.seed}) is not finite after "
                    f"round {round}; lower method.training.learning_rate."
                )


def _batch(cohort: Cohort, rows_kB: Tensor, weight_kB: Tensor) -> Batch:
    first = torch.arange(len(rows_kB), device=rows_kB.device).unsqueeze(1) * cohort.x.shape[1]
    rows = (first + rows_kB).flatten()
    x, y = (t.flatten(0, 1).index_select(0, rows).unflatten(0, rows_kB.shape) for t in (cohort.x, cohort.y))
    return Batch(x=x, y=y, weight=weight_kB)
