"""The rounds of one run of the gradient lab, each committed before the next one begins.

All clients start a round from the same weights. Killed anywhere, the same call goes on and ends with the same bytes:
draws are keyed by (seed, round, client), and what the server and the defense remember is in the run's state.
"""

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from privkit import atomic
from privkit.errors import InputError
from privkit.finetune import questions
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab, Tested
from privkit.finetune.local import Change, changes
from privkit.finetune.model import logits
from privkit.finetune.server import Server
from privkit.finetune.upload import message, summed
from privkit.release import Release, Update
from privkit.store import Run, RunInfo
from privkit.train.loop import device_named
from privkit.train.metrics import write_metrics
from privkit.train.outbox import below

Progress = Callable[[str, int, int], None]
TOGETHER = "all clients together"
"""The one sender that the server sees under secure aggregation."""


def train(
    config: FinetuneConfig,
    path: Path,
    *,
    seed: int = 0,
    cell: str = "finetune",
    device: str = "auto",
    progress: Progress = lambda stage, done, total: None,
) -> Run:
    """Train one run to its end in a folder, from where it was left, and return it.

    Args:
        config: what to run.
        path: the run's folder; one that is complete is left alone.
        seed: of every draw.
        cell: name of the configuration; runs that differ in nothing but the seed share it.
        device: ``auto``, ``cpu`` or ``cuda``; other devices round differently.
        progress: called with a stage's name, how much of it is done, and of how much.

    Raises:
        InputError: the folder holds another run, or data, backbone or defense cannot be had as configured.
        DivergedError: a number was not finite; the rounds before stay committed.
    """
    lab = Lab.open(config, seed=seed, device=device_named(device))
    run = Run.create(path, info(lab, cell=cell))
    try:
        _Rounds(lab, run).go(progress)
    finally:
        run.close()
    return run


def info(lab: Lab, *, cell: str) -> RunInfo:
    """Return what a run is created with, and compared with when it is resumed."""
    return RunInfo(
        cell=cell,
        seed=lab.seed,
        rounds=lab.config.rounds,
        clients=senders(lab),
        num_classes=lab.config.data.num_classes,
        dim=lab.model.width,
        config=lab.config.settings(),
        data=lab.hashes,
        versions={name: version(name) for name in ("privkit-audit", "numpy", "torch", "transformers")},
    )


def senders(lab: Lab) -> tuple[str, ...]:
    """Return who sends messages: every client, or all of them as one."""
    return (TOGETHER,) if lab.config.secure_aggregation else tuple(client.name for client in lab.clients)


class _Rounds:
    """One run that goes on."""

    def __init__(self, lab: Lab, run: Run) -> None:
        self.lab, self.run, self.config = lab, run, lab.config
        self.guard = lab.guard()
        self.server = Server(lab.start, lab.config)
        self.rows: list[dict[str, Any]] = []

    def go(self, progress: Progress) -> None:
        """Train all rounds that are not committed yet."""
        start, began = self.run.completed, time.perf_counter()
        if self.run.complete:
            return
        if start:
            self._restore(start)
        else:
            questions.write(self.run, self.lab)
        for round in range(start, self.config.rounds):
            progress("train", round, self.config.rounds)
            self._round(round)
        progress("train", self.config.rounds, self.config.rounds)
        spent = {
            "seconds": time.perf_counter() - began,
            "rounds": self.config.rounds - start,
            "runs_in_batch": 1,
        }
        atomic.write_json(self.run.path / "timing.json", spent, durable=False)

    def _round(self, round: int) -> None:
        sent_out = {name: w.numpy() for name, w in self.server.weights.items()}
        found = changes(self.lab, self.guard, self.server.weights, round)
        releases = self._releases(round, {k: self.guard.sent(change) for k, change in found.items()})
        updates = {r.client: r.payload for r in releases if isinstance(r.payload, Update)}
        self.server.merge(updates, dict.fromkeys(updates, 1.0) if self._one_sender else self.lab.shares)
        self._test(round)
        write_metrics(self.run.path, self.rows, dict(enumerate(senders(self.lab))))
        self.run.commit(
            round, releases, state=self._state(), broadcast=sent_out, kept=round in self.config.kept_rounds
        )

    @property
    def _one_sender(self) -> bool:
        return self.config.secure_aggregation

    def _releases(self, round: int, sent: dict[int, Change]) -> list[Release]:
        """Return what the server sees of a round, and what it costs."""
        start, config = self.server.weights, self.config
        updates = {
            k: message(c, start, kind=config.upload, transport=config.transport) for k, c in sent.items()
        }
        sizes = {k: len(self.lab.clients[k].parts.members) for k in updates}
        if self._one_sender:
            updates = {0: summed(updates, self.lab.shares)}
            sizes = {0: min(sizes.values())}  # whose records are drawn most often
        return [
            Release(round=round, client=k, payload=u, event=config.defense.event(config, records=sizes[k]))
            for k, u in updates.items()
        ]

    def _test(self, round: int) -> None:
        """Note how many of each client's test records the new weights get right."""
        self.lab.model.load({n: w.to(self.lab.device) for n, w in self.server.weights.items()})
        shared: dict[int, float] = {}
        for client in self.lab.clients:
            if id(client.test) not in shared:
                shared[id(client.test)] = self._accuracy(client.test)
        scores = [shared[id(client.test)] for client in self.lab.clients]
        if self._one_sender:
            scores = [float(np.mean(scores))]
        self.rows += [{"round": round, "client": k, "accuracy": score} for k, score in enumerate(scores)]

    def _accuracy(self, test: Tested) -> float:
        return float((logits(self.lab.model, test.texts).argmax(1) == test.labels).mean())

    def _state(self) -> dict[str, np.ndarray]:
        named = {f"server.{n}": a for n, a in self.server.state().items()}
        named |= {f"guard.{n}": a for n, a in self.guard.memory().items()}
        return named | {f"metrics.{key}": np.array([row[key] for row in self.rows]) for key in _COLUMNS}

    def _restore(self, round: int) -> None:
        state = self.run.state(round)
        try:
            self.server.restore(below(state, "server."))
            self.guard.restore(below(state, "guard."))
            columns = [state[f"metrics.{key}"].tolist() for key in _COLUMNS]
        except KeyError as error:
            raise InputError(
                f"{self.run.path}: the state of round {round} lacks {error}; train again."
            ) from None
        self.rows = [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]


_COLUMNS = ("round", "client", "accuracy")
