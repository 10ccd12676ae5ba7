"""The training loop: the only one, with no method's and no defense's name in it.

Order of a round, as in the papers: every client embeds its records and releases; the server merges and
answers; every client trains; every client is tested. All runs of a batch go through it together. A run whose
budget does not hold the next release of one of its clients ends before any noise of that round is drawn; the
others go on, and what happens to its slices then is looked at by nobody.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch

from privkit import atomic
from privkit.defenses._base import Private
from privkit.errors import DivergedError, InputError
from privkit.measured import NEWCOMER
from privkit.methods._base import Sends, State
from privkit.methods._down import Down
from privkit.release import ByClass, Payload, Release
from privkit.store import Run
from privkit.study import Plan, Study, plans, refuse_single_run
from privkit.train import study as studies
from privkit.train.answers import stacked_answers
from privkit.train.attendance import Attendance
from privkit.train.encoded import Encoded, Progress, encode_all, source
from privkit.train.fleets import fleets, newcomers
from privkit.train.local import Fleet
from privkit.train.memory import keep_freed_memory
from privkit.train.metrics import write_metrics
from privkit.train.outbox import Outbox, below
from privkit.train.projection import refuse_unaffordable
from privkit.truth import Hidden

Sent = list[tuple[Release, Hidden | None]]
_SLOWER = "lower method.training.learning_rate"
"""The messages of one run in one round, each with what was computed on the way to it."""


def device_named(name: str) -> torch.device:
    """Return the device for ``auto`` (CUDA when there), ``cpu``, ``cuda`` or ``cuda:1``."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device {name!r} is unknown; use auto, cpu or cuda.") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device {name!r} cannot train here; use auto, cpu or cuda.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError("device cuda was asked for, but torch sees no CUDA device; use --device auto.")
    return device


def train(
    study: Study,
    root: Path,
    *,
    device: str = "auto",
    progress: Progress = lambda stage, done, total: None,
    notice: Callable[[str], None] = lambda sentence: None,
    announce: Callable[[str], None] = lambda what: None,
) -> list[Path]:
    """Train every run of a study that is not complete yet, and return all of their folders.

    Args:
        study: what to run.
        root: folder for the runs; what is complete there is left alone, what was begun is resumed.
        device: ``auto``, ``cpu`` or ``cuda``.
        progress: called with a stage's name, how much of it is done, and of how much.
        notice: called once with each sentence about records that are left out.
        announce: called before each batch with what is trained in it, in a few words.

    Raises:
        InputError: a run there was created from another configuration, data or seed.
        DivergedError: some runs diverged, each named; all others were trained to their ends before.
        BudgetExceededError: a plan's budget does not hold what it plans; nothing is written then.
    """
    todo, target = plans(study), device_named(device)
    keep_freed_memory()
    if target.type == "cuda":
        # torch rounds convolutions to TF32 unless told not to; products of matrices are left alone by default
        torch.backends.cudnn.allow_tf32 = False
    refuse_single_run(root, todo)
    encoded = encode_all((plan.config for plan in todo), progress)
    for plan in todo:
        if (root / plan.name / "run.json").exists():
            Run(root / plan.name).refuse_change(studies.info(plan, encoded[source(plan.config)]))
    for plan in todo:
        studies.refuse_impossible(plan, encoded[source(plan.config)])
        refuse_unaffordable(plan, encoded[source(plan.config)])
    loaded = (note for data in encoded.values() for note in data.notes)
    said = (*loaded, *studies.left_out(todo, encoded), *studies.silent(todo, encoded))
    for sentence in dict.fromkeys(said):
        notice(sentence)
    diverged: list[str] = []
    for batch in studies.batches(root, todo):
        data = encoded[source(batch[0].config)]
        names = [plan.name for plan in batch]
        announce(studies.described(batch))
        runs = [studies.open_run(root, plan, data, names) for plan in batch]
        diverged += _Batch(batch, runs, data, target).train(progress)
    if diverged:
        raise DivergedError(_said(diverged))
    return [root / plan.name for plan in todo]


def _said(diverged: list[str]) -> str:
    """Return one sentence about the runs that diverged."""
    first, *rest = diverged
    more = f", and {len(rest)} more run{'s' * (len(rest) > 1)} diverged" if rest else ""
    return f"{first}{more}; change that, or remove the cell and its folder: all other runs were trained to their ends."


class _Batch:
    """Runs trained together: their clients, by architecture, and one server state per run."""

    def __init__(
        self,
        plans: list[Plan],
        runs: list[Run],
        data: Encoded,
        device: torch.device,
    ) -> None:
        self.plans, self.runs, self.data = plans, runs, data
        self.config = plans[0].config
        self.method, self.server = self.config.method, self.config.answering
        self.outboxes = [Outbox(plan, run, data) for plan, run in zip(plans, runs, strict=True)]
        self.attendance = [Attendance.of(plan, clients=len(data.names)) for plan in plans]
        self.device = device
        self.diverged: dict[int, str] = {}
        self._start()

    def _start(self) -> None:
        shape = {"dim": self.data.dim, "num_classes": self.data.num_classes}
        self.fleets = fleets(self.plans, self.data, self.device)
        self.newcomers = newcomers(self.plans, self.data, self.device)
        self.states = [self.server.start(plan.config.method, **shape, seed=plan.seed) for plan in self.plans]
        self.rows: list[list[dict[str, float | int]]] = [[] for _ in self.plans]

    def train(self, progress: Progress) -> list[str]:
        """Train from the last round that every run has, to the end, or until all have spent their budgets.

        Returns:
            a sentence, without its full stop, about each run that diverged: it stays as it was before that round.
        """
        start, unfinished = self._start_round(), [run for run in self.runs if not run.complete]
        if start:
            self._load(start)
        for outbox in self.outboxes:
            outbox.begin(start)
        began, end = time.perf_counter(), start
        for round in range(start, self.config.rounds):
            messages = self._messages(round)
            for r in self._going():
                self.outboxes[r].stop_if_exhausted(round, messages[r])
            if not self._going():
                break
            progress("train", round, self.config.rounds)
            self._round(round, messages)
            end = round + 1
        progress("train", self.config.rounds, self.config.rounds)
        self._write_timing(unfinished, time.perf_counter() - began, end - start)
        return [why for _, why in sorted(self.diverged.items())]

    def _going(self) -> list[int]:
        """Return the runs that have not ended before their time."""
        return [r for r, run in enumerate(self.runs) if not run.ended and r not in self.diverged]

    def _start_round(self) -> int:
        """Return the last round whose state every run still has: runs keep those of their last two rounds."""
        completed = [self.runs[r].completed for r in self._going()]
        return min(completed) if max(completed) - min(completed) <= 1 else 0

    def _round(self, round: int, messages: list[dict[int, Private]]) -> None:
        released = {r: self.outboxes[r].release(round, messages[r]) for r in self._going()}
        for r, sent in released.items():
            uploads = {x.client: _arriving(x, self.data.num_classes) for x, _ in sent}
            try:
                self.states[r] = self.server.merge(self.plans[r].config.method, self.states[r], uploads)
            except DivergedError as error:
                self._leave_out(r, round, str(error))
        shared = [
            self.server.shared(plan.config.method, state)
            for plan, state in zip(self.plans, self.states, strict=True)
        ]
        for fleet in self.fleets:
            each = [
                self.server.down(self.plans[c.run].config.method, self.states[c.run], c.index)
                for c in fleet.cohort.clients
            ]
            down = stacked_answers(each, shared, fleet.cohort.runs)
            first = self._tested(fleet, down) if self.method.tests_arrivals else None
            present = self._numbers(fleet, [who.trainers(round) for who in self.attendance])
            fleet.train_round(round, self.method, down, present)
            for r, what in fleet.diverged().items():
                if r in self._going():
                    self._leave_out(r, round, f"{what}; {_SLOWER}")
            self._note(round, fleet, self._tested(fleet, down) if first is None else first)
        if self.newcomers is not None:
            self._note(round, self.newcomers, self._newcomers_tested(self.newcomers, shared))
        self._commit(round, {r: sent for r, sent in released.items() if r in self._going()})

    def _tested(self, fleet: Fleet, down: Down) -> list[float]:
        return fleet.accuracy(self.method, down, num_classes=self.data.num_classes)

    def _newcomers_tested(self, fleet: Fleet, shared: list[State]) -> list[float]:
        """Return the accuracy of those who have just arrived: they have what all start from, and what all got."""
        down = stacked_answers([{} for _ in fleet.cohort.clients], shared, fleet.cohort.runs)
        self.method.receive(fleet.params, down)
        return self._tested(fleet, down)

    def _note(self, round: int, fleet: Fleet, scores: list[float]) -> None:
        for client, score in zip(fleet.cohort.clients, scores, strict=True):
            if client.run in self._going():
                self.rows[client.run].append({"round": round, "client": client.index, "accuracy": score})

    def _leave_out(self, r: int, round: int, why: str) -> None:
        """Train a run no further: its own numbers are lost, those of its neighbours are not."""
        plan = self.plans[r]
        self.diverged[r] = (
            f"cell {plan.cell} (seed {plan.seed}) diverged in round {round + 1}: {why.rstrip('.')}"
        )

    def _messages(self, round: int) -> list[dict[int, Private]]:
        """Return what the senders of each run would make a message of in a round; nothing where nothing is sent."""
        found: list[dict[int, Private]] = [{} for _ in self.runs]
        if self.method.sends is Sends.NOTHING:
            return found
        senders = [who.senders(round) for who in self.attendance]
        for fleet in self.fleets:
            numbers = self._numbers(fleet, senders)
            if not len(numbers):
                continue
            some = fleet if len(numbers) == len(fleet.cohort.clients) else fleet.of(numbers)
            if self.method.sends is Sends.WEIGHTS:
                mine = some.weights(self.method, num_classes=self.data.num_classes, trained=round > 0)
                for client, weights in zip(some.cohort.clients, mine, strict=True):
                    found[client.run][client.index] = weights
            else:
                self._embed(round, some, found)
        return [{m: mine[m] for m in sorted(mine)} for mine in found]

    def _embed(self, round: int, fleet: Fleet, found: list[dict[int, Private]]) -> None:
        """Add what each client of a fleet would make its prototypes of; a run with an infinite one is left out."""
        released, said = fleet.released(self.method), fleet.statistics(self.method)
        for z_nd, s_nq, client in zip(released, said, fleet.cohort.clients, strict=True):
            odd = _not_finite(z_nd, s_nq)
            if client.run not in self.diverged and odd:
                what = f"{odd} of client {client.index} is not finite"
                self._leave_out(client.run, round - 1, f"{what}; {_SLOWER}")
            if client.run in self.diverged:
                continue
            outbox = self.outboxes[client.run]
            mine = outbox.embeddings(client.index, z_nd, client.y, round=round, statistics=s_nq)
            found[client.run][client.index] = mine

    def _numbers(self, fleet: Fleet, clients: list[np.ndarray]) -> torch.Tensor:
        """Return the places in a fleet of some clients of each run, ascending."""
        chosen = [set(mine.tolist()) for mine in clients]
        rows = [g for g, client in enumerate(fleet.cohort.clients) if client.index in chosen[client.run]]
        return torch.tensor(rows, dtype=torch.int64, device=self.device)

    # ------------------------------------------------------------------ state

    def _commit(self, round: int, released: Mapping[int, Sent]) -> None:
        for r, sent in released.items():
            run = self.runs[r]
            if round >= run.completed:
                write_metrics(run.path, self.rows[r], self._domains)
            run.commit(
                round,
                [release for release, _ in sent],
                hidden={release.client: hidden for release, hidden in sent if hidden is not None},
                state=self._state(r),
            )

    @property
    def _domains(self) -> dict[int, str]:
        """Return the domain of each client, and of newcomers."""
        named = dict(enumerate(self.data.names))
        return named if self.config.held_out is None else {**named, NEWCOMER: self.config.held_out}

    def _state(self, r: int) -> State:
        named: State = {f"server.{k}": v for k, v in self.states[r].items()}
        for i, fleet in enumerate(self.fleets):
            named |= {f"{self._at(i)}{k}": v for k, v in fleet.state_of(r).items()}
        named |= {f"known.{k}": v for k, v in self.outboxes[r].memory().items()}
        for key in ("round", "client", "accuracy"):
            named[f"metrics.{key}"] = np.array([row[key] for row in self.rows[r]])
        return named

    def _at(self, fleet: int) -> str:
        """Return what the names of an architecture's state begin with; nothing where there is only one."""
        return f"{fleet}:" if len(self.fleets) > 1 else ""

    def _load(self, round: int) -> None:
        saved = {r: self.runs[r].state(round) for r in self._going()}
        for i, fleet in enumerate(self.fleets):
            for r, named in saved.items():
                fleet.restore(r, below(named, self._at(i)))
            for r in range(len(self.runs)):
                if r not in saved:
                    who = self.attendance[r]
                    fleet.pass_over(r, lambda m, who=who: who.trained(m, round), self.method)
        for r, named in saved.items():
            self.states[r] = below(named, "server.")
            self.outboxes[r].restore(below(named, "known."))
            keys = ("round", "client", "accuracy")
            columns = zip(*(named[f"metrics.{key}"].tolist() for key in keys), strict=True)
            self.rows[r] = [dict(zip(keys, row, strict=True)) for row in columns]

    def _write_timing(self, runs: list[Run], seconds: float, rounds: int) -> None:
        """Write how long training took; times are no part of what a resumed run must repeat."""
        for run in runs:
            spent = {"seconds": seconds, "rounds": rounds, "runs_in_batch": len(self.runs)}
            atomic.write_json(run.path / "timing.json", spent, durable=False)


def _not_finite(z_nd: np.ndarray, s_nq: np.ndarray | None) -> str:
    """Return what of a client's records is not finite, in words, or nothing."""
    if not np.isfinite(z_nd).all():
        return "an embedding"
    return "" if s_nq is None or np.isfinite(s_nq).all() else "a statistic"


def _arriving(release: Release, num_classes: int) -> Payload:
    """Return what a server takes of a message: no canaries, and no class that is taken for absent."""
    payload = release.payload
    return payload.only(payload.labels < num_classes).present() if isinstance(payload, ByClass) else payload
