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
from privkit.defenses._by_record import RecordNoise
from privkit.defenses._local import LocalRule
from privkit.methods._base import AbstractMethod, LocalTraining, Sends
from privkit.methods._down import Down
from privkit.methods._phases import Passes, Phase
from privkit.network import Drops, Network
from privkit.noise import Purpose
from privkit.train import by_hand
from privkit.train.by_record import PrivateSteps
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
        optimizers: of each phase of local training, with its memory.
        rule: what the defense changes in local training.
        memory: the rule's.
        precision: of the arithmetic; parameters are kept in float32.
        received: what each client last got in the place of what it sends, as its server knows it; what all begin with
            before that. Empty where no weights are sent.
        kept: what the method keeps of each client between steps.
    """

    network: Network
    cohort: Cohort
    params: dict[str, Tensor]
    optimizers: tuple[StackedOptimizer, ...]
    rule: LocalRule
    memory: dict[str, Tensor]
    precision: Precision = Precision.FP32
    received: dict[str, Tensor] = field(default_factory=dict)
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
        method: AbstractMethod | None = None,
        kept: Mapping[str, Tensor] | None = None,
    ) -> "Fleet":
        """Return clients that have not trained yet.

        Args:
            network: what is trained.
            cohort: the clients.
            params: with the client axis in the cohort's order.
            training: how.
            rule: what the defense changes in it.
            precision: of the arithmetic.
            method: whose phases local training consists of; a single one that trains everything by default.
            kept: what the method keeps of each client before its first step.
        """
        own = dict(params)
        trained = [own] if method is None else [_trained(phase, own) for phase in method.phases]
        optimizers = tuple(OPTIMIZERS[training.optimizer].start(some, training) for some in trained)
        sent = {} if method is None or method.sends is not Sends.WEIGHTS else own
        received = {name: p.clone() for name, p in sent.items() if method and method.sends_weight(name)}
        return cls(
            network,
            cohort,
            own,
            optimizers,
            rule,
            rule.memory(own),
            precision,
            received,
            dict(kept or {}),
        )

    def stacked(self) -> dict[str, dict[str, Tensor]]:
        """Return every tensor that training changes, by what it is and by name; each has the client axis first."""
        found = {
            "params": self.params,
            "rule": self.memory,
            "received": self.received,
            "kept": self.kept,
        }
        for i, optimizer in enumerate(self.optimizers):
            found |= {f"{i}-{kind}" if i else kind: named for kind, named in optimizer.memory().items()}
        return found

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

    def pass_over(self, run: int, rounds: Callable[[int], int], method: AbstractMethod) -> None:
        """Count one run's steps as if it had trained for some rounds: its numbers are of no more use.

        Clients that took equally many steps take the next one together, and last bits depend on who does.

        Args:
            run: its number.
            rounds: how many rounds a client of it trained in, by its number.
            method: whose phases they were.
        """
        batches = -(-self.cohort.n // self._slots(method.training.batch_size))
        for g in self._of_run(run):
            steps = rounds(self.cohort.clients[g].index) * int(batches[g])
            for phase, optimizer in zip(method.phases, self.optimizers, strict=True):
                optimizer.pass_over(g, steps * phase.epochs)

    def of(self, clients: Tensor) -> "Fleet":
        """Return the clients of some ascending numbers, with copies of all that training changes."""
        return Fleet(
            self.network,
            self.cohort.of(clients),
            {name: p[clients] for name, p in self.params.items()},
            tuple(optimizer.of(clients) for optimizer in self.optimizers),
            self.rule,
            {name: kept[clients] for name, kept in self.memory.items()},
            self.precision,
            {name: p[clients] for name, p in self.received.items()},
            {name: kept[clients] for name, kept in self.kept.items()},
        )

    def take_back(self, clients: Tensor, some: "Fleet") -> None:
        """Take what training changed of the clients of some numbers, which :meth:`of` gave."""
        changed = some.stacked()
        for kind, tensors in self.stacked().items():
            for name, tensor in tensors.items():
                tensor[clients] = changed[kind][name]

    def _of_run(self, run: int) -> list[int]:
        return [g for g, client in enumerate(self.cohort.clients) if client.run == run]

    def weights(self, method: AbstractMethod, *, num_classes: int, trained: bool) -> Iterator[Weights]:
        """Yield what each client would send, in stacked order.

        Args:
            method: says what.
            num_classes: number of classes.
            trained: whether the clients have trained for a round since their last message.
        """
        besides = (
            self._over_records(method.sent_besides, num_classes) if _overrides(method, "sent_besides") else {}
        )
        sent = {n: p for n, p in self.params.items() if method.sends_weight(n)} | besides
        on_host = {name: p.detach().cpu().numpy() for name, p in sent.items()}
        before = {name: p.cpu().numpy() for name, p in self.received.items()}
        for g in range(len(self.cohort.clients)):
            records = int(self.cohort.n[g])
            yield Weights(
                named={name: p[g] for name, p in on_host.items()},
                received={name: p[g] for name, p in before.items()},
                depends_on=DependsOn.PRIVATE_STATE,
                steps=method.steps(records) if trained else 0,
                sampling_rate=method.sampling_rate(records),
            )

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
        # by default, a pass over all records for nothing
        return self._over_records(method.recall, num_classes) if _overrides(method, "recall") else {}

    @torch.no_grad()
    def _over_records(self, summary: Callable[..., dict[str, Tensor]], num_classes: int) -> dict[str, Tensor]:
        """Return what a function makes of the embeddings and labels of every client's own records."""
        found: dict[str, list[Tensor]] = {}
        for part, z in self._embedded(self.network.embed):
            y = self.cohort.y[part, : z.shape[1]]
            for name, tensor in summary(z.float(), y, num_classes=num_classes).items():
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

    def train_round(
        self, round: int, method: AbstractMethod, down: Down, present: Tensor | None = None
    ) -> None:
        """Train every client, or those of some ascending numbers, for one round, in place.

        Clients own disjoint slices, so the gradient of the summed loss is every client's own gradient.
        """
        if present is None or len(present) == len(self.cohort.clients):
            self._train(round, method, down)
        elif len(present):
            some = self.of(present)
            some._train(round, method, down.of(present))
            self.take_back(present, some)

    def _train(self, round: int, method: AbstractMethod, down: Down) -> None:
        method.adapt(self.network, self.params, down, self._passes(round), len(self.cohort.clients))
        for name, before in self.received.items():
            if name in down:
                before.copy_(down[name])
        skipped: dict[str, int] = {}
        drops = self.cohort.drops(round, self.network.settings.dropout)
        normals = self.cohort.normals(round, method.normals(down))
        for phase, optimizer in zip(method.phases, self.optimizers, strict=True):
            if not phase.epochs:
                continue
            done = skipped.get(phase.model, 0)
            self._train_phase(round, method, phase, optimizer, down, drops, normals, skipped=done)
            skipped[phase.model] = done + phase.epochs

    def _train_phase(
        self,
        round: int,
        method: AbstractMethod,
        phase: Phase,
        optimizer: StackedOptimizer,
        down: Down,
        drops: Callable[[slice], Drops],
        normals: Callable[[slice], Tensor | None],
        *,
        skipped: int,
    ) -> None:
        setup = method.training
        if isinstance(self.rule, RecordNoise):
            private = PrivateSteps.of(self.rule, self.cohort, round, method, phase, skipped=skipped)
            for k, gradients in private.steps(self._batch, partial(self._of_single_records, phase, down)):
                optimizer.step(self.params, gradients, active=k, setup=setup)
            return
        rows, weights, active = self.cohort.batches(
            round, epochs=phase.epochs, size=self._slots(setup.batch_size), skipped=skipped
        )
        most = self.network.at_once // setup.batch_size
        by_rule = by_hand.applies(self.network, self.rule, setup) and not (
            self.kept or _overrides(method, "phases")
        )
        for step, k in enumerate(active.tolist()):
            parts = [
                (
                    part,
                    replace(self._batch(part, rows[step], weights[step]), normals=normals(part)),
                    down.part(part),
                )
                for part in slices(k, most=most)
            ]
            if by_rule and self.precision is Precision.FP32:
                for part, batch, got in parts:
                    by_hand.descend(self.network, self._of(part), method, batch, got, setup)
                continue
            gradients = [
                self._gradients(self.network.training(drops(part)).step(), phase, part, batch, got)
                for part, batch, got in parts
            ]
            optimizer.step(self.params, _joined(gradients), active=k, setup=setup)
            self.rule.after_step(self.params, self.memory, active=k)

    def _passes(self, round: int) -> Passes:
        """Return what goes over some of each client's records before it trains."""

        def passes(size: int, share: float) -> Iterator[tuple[slice, Batch]]:
            rows, weights, active = self.cohort.batches(
                round, epochs=1, size=self._slots(size), share=share, purpose=Purpose.ADAPTATION
            )
            for step, k in enumerate(active.tolist()):
                for part in slices(k, most=self.network.at_once // size):
                    yield part, self._batch(part, rows[step], weights[step])

        return passes

    def _slots(self, batch_size: int) -> int:
        """Return how many slots a mini-batch has: no more than the largest client can fill.

        What dropout draws depends on their number, and must not depend on a client's neighbours.
        """
        largest = int(self.cohort.n.max())
        return batch_size if self.network.settings.dropout else min(batch_size, largest)

    def _of_single_records(
        self, phase: Phase, down: Down, clients: Tensor, batch: Batch
    ) -> dict[str, Tensor]:
        """Return the gradient of each record of a batch, whose clients are those of some numbers."""
        return self._gradients(self.network.step(), phase, clients, batch, down.of(clients))

    def _gradients(
        self, network: Network, phase: Phase, part: slice | Tensor, batch: Batch, down: Down
    ) -> dict[str, Tensor]:
        """Return the gradient of some clients' losses, by parameter that the phase trains."""
        some = {name: p[part] for name, p in self.params.items()}
        own = {n: p.detach().requires_grad_(phase.trains(n)) for n, p in some.items()}
        live = phase.view(own)
        kept = {name: m[part] for name, m in self.memory.items()}
        with self.arithmetic():
            z_GBd = network.embed(live, batch.x)
            u_GBd = self.rule.bound(z_GBd)
            loss = phase.loss(network, live, u_GBd, batch, down)
            loss = loss + self.rule.loss(network, live, kept, z_GBd, u_GBd, batch)
            with torch.no_grad():
                new = phase.keep(network, live, u_GBd, batch)
        for name, kept_G in new.items():
            self.kept[name][part] = kept_G
        wanted = {name: p for name, p in own.items() if p.requires_grad}
        if not loss.requires_grad:
            return {}
        found = torch.autograd.grad(loss.sum(), list(wanted.values()), allow_unused=True)
        return {name: g for name, g in zip(wanted, found, strict=True) if g is not None}

    def _batch(self, part: slice, rows_GB: Tensor, weight_GB: Tensor) -> Batch:
        """Return some clients' mini-batches of a step."""
        rows_kB, cohort = rows_GB[part], self.cohort
        first = torch.arange(part.start, part.stop, device=rows_kB.device).unsqueeze(1) * cohort.x.shape[1]
        rows = (first + rows_kB).flatten()
        x, y = (
            t.flatten(0, 1).index_select(0, rows).unflatten(0, rows_kB.shape) for t in (cohort.x, cohort.y)
        )
        held = torch.from_numpy(cohort.n[part]).to(weight_GB.device, weight_GB.dtype)
        kept = {name: tensor[part] for name, tensor in self.kept.items()}
        return Batch(x=x, y=y, weight=weight_GB[part], held=held, kept=kept)

    def diverged(self) -> dict[int, str]:
        """Return, by run, which parameter of which client is no longer finite."""
        found: dict[int, str] = {}
        for name, p in self.params.items():
            for g in (~p.reshape(len(p), -1).isfinite().all(1)).nonzero().flatten().tolist():
                client = self.cohort.clients[g]
                found.setdefault(client.run, f"{name} of client {client.index} is not finite")
        return found


def _trained(phase: Phase, params: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the parameters that a phase trains."""
    return {name: p for name, p in params.items() if phase.trains(name)}


def _overrides(method: AbstractMethod, name: str) -> bool:
    """Return whether a method has a hook of its own."""
    return getattr(type(method), name) is not getattr(AbstractMethod, name)


def _joined(gradients: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the gradients of all clients from those of some at a time."""
    if len(gradients) == 1:
        return gradients[0]
    return {name: torch.cat([some[name] for some in gradients]) for name in gradients[0]}
