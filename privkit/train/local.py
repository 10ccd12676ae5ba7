"""Local training and testing of clients that share an architecture, as one batch of tensor operations."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from accountant.contract import DependsOn
from privkit.batch import Batch
from privkit.config import Precision
from privkit.defenses._local import LocalRule
from privkit.methods._base import AbstractMethod, LocalTraining
from privkit.methods._down import Down
from privkit.network import Network
from privkit.train import by_hand
from privkit.train.cohort import Cohort, slices
from privkit.train.optimizer import OPTIMIZERS, StackedOptimizer
from privkit.weights import Weights


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
        kept: what the method keeps of each client between steps.
    """

    network: Network
    cohort: Cohort
    params: dict[str, Tensor]
    optimizer: StackedOptimizer
    rule: LocalRule
    memory: dict[str, Tensor]
    precision: Precision = Precision.FP32
    kept: dict[str, Tensor] = field(default_factory=dict)

    @classmethod
    def start(
        cls,
        network: Network,
        cohort: Cohort,
        params: Mapping[str, Tensor],
        *,
        training: LocalTraining,
        rule: LocalRule,
        precision: Precision = Precision.FP32,
        kept: Mapping[str, Tensor] | None = None,
    ) -> "Fleet":
        """Return clients that have not trained yet; tensors have the client axis in the cohort's order."""
        own = dict(params)
        optimizer = OPTIMIZERS[training.optimizer].start(own, training)
        return cls(network, cohort, own, optimizer, rule, rule.memory(own), precision, dict(kept or {}))

    def stacked(self) -> dict[str, dict[str, Tensor]]:
        """Return every tensor that training changes, by what it is and by name; each has the client axis first."""
        return {
            "params": self.params,
            **self.optimizer.memory(),
            "rule": self.memory,
            "kept": self.kept,
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

    def pass_over(self, run: int, rounds: int, training: LocalTraining) -> None:
        """Count one run's steps as if it had trained for some rounds: its numbers are of no more use.

        Clients that took equally many steps take the next one together, and last bits depend on who does.
        """
        batches = -(-self.cohort.n // self._slots(training.batch_size))
        for g in self._of_run(run):
            self.optimizer.pass_over(g, rounds * training.epochs * int(batches[g]))

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
    def released(self, method: AbstractMethod) -> Iterator[np.ndarray]:
        """Yield the embeddings that each client makes its release from, float64 of shape [n, d], in stacked order."""
        for part, z in self._embedded(partial(method.released, self.network)):
            for z_nd, client in zip(z.double().cpu().numpy(), self.cohort.clients[part], strict=True):
                yield z_nd[: len(client.y)]

    @torch.no_grad()
    def statistics(self, method: AbstractMethod) -> Iterator[np.ndarray | None]:
        """Yield what each client's model says of its records, float64 [n, q], or ``None``, in stacked order."""
        if not method.says:
            yield from [None] * len(self.cohort.clients)
            return
        for part, s in self._embedded(partial(method.statistics, self.network)):
            for s_nq, client in zip(s.double().cpu().numpy(), self.cohort.clients[part], strict=True):
                yield s_nq[: len(client.y)]

    @torch.no_grad()
    def accuracy(self, method: AbstractMethod, down: Down, *, num_classes: int) -> list[float]:
        """Return each client's share of its own test records that are classified right, in stacked order."""
        own = self._recalled(method, num_classes)
        right = np.zeros(len(self.cohort.clients), dtype=np.int64)
        for part, x, y in self._tests:
            mine = {name: tensor[part] for name, tensor in own.items()}
            with self.arithmetic():
                logits = method.logits(self.network, self._of(part), x, down.part(part), mine)
            right[part] += (logits.argmax(-1) == y).sum(1).cpu().numpy()
        return [int(r) / len(client.y_test) for r, client in zip(right, self.cohort.clients, strict=True)]

    @cached_property
    def _tests(self) -> list[tuple[slice, Tensor, Tensor]]:
        return self.cohort.tests(most=self.network.at_once)

    def _recalled(self, method: AbstractMethod, num_classes: int) -> dict[str, Tensor]:
        """Return what every client keeps of its own records to classify with."""
        if type(method).recall is AbstractMethod.recall:
            return {}  # a pass over all records for nothing
        found: dict[str, list[Tensor]] = {}
        for part, z in self._embedded(self.network.embed):
            y = self.cohort.y[part, : z.shape[1]]
            for name, tensor in method.recall(z.float(), y, num_classes=num_classes).items():
                found.setdefault(name, []).append(tensor)
        return {name: torch.cat(parts) for name, parts in found.items()}

    def _embedded(
        self, embed: Callable[[dict[str, Tensor], Tensor], Tensor]
    ) -> Iterator[tuple[slice, Tensor]]:
        """Yield some clients at a time, and what a map gives for all of their training records."""
        for part, pieces in self.cohort.rows(most=self.network.at_once):
            params = self._of(part)
            with self.arithmetic():
                z = [embed(params, x) for x in pieces]
            yield part, z[0] if len(z) == 1 else torch.cat(z, dim=1)

    def _of(self, part: slice) -> dict[str, Tensor]:
        return {name: p[part] for name, p in self.params.items()}

    def train_round(self, round: int, method: AbstractMethod, down: Down) -> None:
        """Train every client for one round, in place.

        Clients own disjoint slices, so the gradient of the summed loss is every client's own gradient.
        """
        setup = method.training
        method.receive(self.params, down)
        rows, weights, active = self.cohort.batches(
            round, epochs=setup.epochs, size=self._slots(setup.batch_size)
        )
        drops = self.cohort.drops(round, self.network.settings.dropout)
        most = self.network.at_once // setup.batch_size
        normals = self.cohort.normals(round, method.normals(down))
        plain = by_hand.applies(self.network, self.rule, setup) and not self.kept
        if plain and self.precision is Precision.FP32:
            for step, k in enumerate(active.tolist()):
                for part in slices(k, most=most):
                    batch = _batch(self.cohort, part, rows[step], weights[step])
                    by_hand.descend(self.network, self._of(part), method, batch, down.part(part), setup)
            return
        for step, k in enumerate(active.tolist()):
            gradients = [
                self._gradients(
                    self.network.training(drops(part)).step(),
                    method,
                    part,
                    replace(
                        _batch(self.cohort, part, rows[step], weights[step]),
                        kept={name: kept[part] for name, kept in self.kept.items()},
                        normals=normals(part),
                    ),
                    down.part(part),
                )
                for part in slices(k, most=most)
            ]
            self.optimizer.step(self.params, _joined(gradients), active=k, setup=setup)
            self.rule.after_step(self.params, self.memory, active=k)

    def _slots(self, batch_size: int) -> int:
        """Return how many slots a mini-batch has: no more than the largest client can fill.

        What dropout draws depends on their number, and must not depend on a client's neighbours.
        """
        largest = int(self.cohort.n.max())
        return batch_size if self.network.settings.dropout else min(batch_size, largest)

    def _gradients(
        self, network: Network, method: AbstractMethod, part: slice, batch: Batch, down: Down
    ) -> dict[str, Tensor]:
        """Return the gradient of some clients' losses, by parameter."""
        live = {name: p.detach().requires_grad_(True) for name, p in self._of(part).items()}
        kept = {name: m[part] for name, m in self.memory.items()}
        with self.arithmetic():
            z_GBd = network.embed(live, batch.x)
            u_GBd = self.rule.bound(z_GBd)
            loss = method.loss(network, live, u_GBd, batch, down)
            with torch.no_grad():
                new = method.keep(network, live, u_GBd, batch)
            loss = loss + self.rule.loss(network, live, kept, z_GBd, u_GBd, batch)
        for name, kept_G in new.items():
            self.kept[name][part] = kept_G
        if not loss.requires_grad:
            return {}
        found = torch.autograd.grad(loss.sum(), list(live.values()), allow_unused=True)
        return {name: g for name, g in zip(live, found, strict=True) if g is not None}

    def diverged(self) -> dict[int, str]:
        """Return, by run, which parameter of which client is no longer finite."""
        found: dict[int, str] = {}
        for name, p in self.params.items():
            for g in (~p.flatten(1).isfinite().all(1)).nonzero().flatten().tolist():
                client = self.cohort.clients[g]
                found.setdefault(client.run, f"{name} of client {client.index} is not finite")
        return found


def _batch(cohort: Cohort, part: slice, rows_GB: Tensor, weight_GB: Tensor) -> Batch:
    """Return some clients' mini-batches of a step."""
    rows_kB = rows_GB[part]
    first = torch.arange(part.start, part.stop, device=rows_kB.device).unsqueeze(1) * cohort.x.shape[1]
    rows = (first + rows_kB).flatten()
    x, y = (t.flatten(0, 1).index_select(0, rows).unflatten(0, rows_kB.shape) for t in (cohort.x, cohort.y))
    return Batch(x=x, y=y, weight=weight_GB[part])


def _joined(gradients: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the gradients of all clients from those of some at a time."""
    if len(gradients) == 1:
        return gradients[0]
    return {name: torch.cat([some[name] for some in gradients]) for name in gradients[0]}
