"""What a study of the gradient lab will take, told beforehand: time is measured on a batch, the rest is counted."""

import shutil
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from privkit.errors import InputError
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab
from privkit.finetune.local import changes
from privkit.finetune.loop import senders
from privkit.finetune.model import logits
from privkit.finetune.terms import Transport
from privkit.store import Run
from privkit.study import Plan, Study, plans, refuse_single_run
from privkit.train.loop import device_named

_ADAM = 3  # weights and two moments
_TIMED = 4  # clients of the batch that is timed
_COPIES = 4  # of a round's messages: as computed, as arrays, as released, as written


@dataclass(frozen=True)
class Estimate:
    """What is left of some runs.

    Attributes:
        rounds: that are left, of all runs together.
        seconds: on this machine, with no defense; some take longer.
        memory: bytes that the messages of the largest round take on their way to disk, at least.
        disk: bytes of uploads, weights and states to come.
    """

    rounds: int
    seconds: float
    memory: int
    disk: int


@dataclass(frozen=True)
class _Round:
    """What one round takes. Attributes: seconds; message: bytes of one client's; senders: messages; weights: bytes."""

    seconds: float
    message: int
    senders: int
    weights: int


def foretold(study: Study[FinetuneConfig], root: Path, *, device: str) -> list[str]:
    """Return a sentence about what is left of a study, or none if nothing is.

    Args:
        study: to be trained.
        root: folder of its runs.
        device: ``auto``, ``cpu`` or ``cuda``.

    Raises:
        InputError: its disk has no room for it, or data or backbone cannot be had.
    """
    todo = plans(study)
    refuse_single_run(root, todo)
    wanted = estimated(todo, root, device=device_named(device))
    refuse_full_disk(root, wanted)
    return [sentence(wanted)] if wanted.rounds else []


def estimated(todo: Sequence[Plan[FinetuneConfig]], root: Path, *, device: torch.device) -> Estimate:
    """Return what is left of some runs; a few batches of each kind of them go through the model for it."""
    rounds, seconds, memory, disk = 0, 0.0, 0, 0
    measured: dict[Hashable, _Round] = {}
    for plan in todo:
        left = range(_completed(root / plan.name), plan.config.rounds)
        if not left:
            continue
        kind = _kind(plan.config)
        if kind not in measured:
            measured[kind] = _measured(plan, device)
        one = measured[kind]
        kept = len([t for t in plan.config.kept_rounds if t in left])
        rounds, seconds = rounds + len(left), seconds + len(left) * one.seconds
        memory = max(memory, _COPIES * one.senders * one.message)
        disk += kept * one.senders * one.message + (len(left) + 2 * _ADAM) * one.weights
    return Estimate(rounds, seconds, memory, disk)


def refuse_full_disk(root: Path, wanted: Estimate) -> None:
    """Raise if a folder's disk has no room for what is left.

    Raises:
        InputError: it has not.
    """
    there = next(path for path in (root.absolute(), *root.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < wanted.disk:
        raise InputError(
            f"{root} would hold {_size(wanted.disk)} more, and its disk has {_size(free)} left; set keep: asked, ask "
            "about fewer questions.rounds, train fewer --cells, or take a larger disk for --out."
        )


def sentence(wanted: Estimate) -> str:
    """Return an estimate as one line.

    >>> sentence(Estimate(rounds=550, seconds=5400.0, memory=10**9, disk=2 * 10**9))
    '550 rounds are left: about 1.5 h without what defenses add, 1.0 GB of memory for messages, 2.0 GB of disk.'
    """
    minutes = wanted.seconds / 60
    took = f"{minutes:.0f} min" if minutes < 60 else f"{minutes / 60:.1f} h"
    return (
        f"{wanted.rounds:,} rounds are left: about {took} without what defenses add, {_size(wanted.memory)} of memory "
        f"for messages, {_size(wanted.disk)} of disk."
    )


def _completed(path: Path) -> int:
    return Run(path).completed if (path / "run.json").exists() else 0


def _kind(config: FinetuneConfig) -> Hashable:
    """Return what decides how long a round takes, but for the defense."""
    return str(
        {name: held for name, held in config.settings().items() if name not in ("defense", "sampling")}
    )


def _measured(plan: Plan[FinetuneConfig], device: torch.device) -> _Round:
    plain = FinetuneConfig.from_settings(
        {**plan.config.settings(), "defense": {"name": "none"}, "sampling": "fixed"}, where=plan.cell
    )
    lab = Lab.open(plain, seed=plan.seed, device=device)
    numbers = sum(w.numel() for w in lab.start.values())
    wide = 2 if plain.transport is Transport.FP16 else 4
    return _Round(
        seconds=_seconds(lab), message=wide * numbers, senders=len(senders(lab)), weights=4 * numbers
    )


def _seconds(lab: Lab) -> float:
    """Return the seconds of one round: the second of two rounds of a few clients, and a test, both scaled up."""
    some = replace(lab, clients=lab.clients[:_TIMED])
    spent = []
    for round in range(2):
        began = time.perf_counter()
        changes(some, some.guard(), some.start, round)
        spent.append(time.perf_counter() - began)
    tests = {id(client.test): client.test for client in lab.clients}
    tested, rows = (
        sum(len(t.labels) for t in tests.values()),
        np.arange(min(32, len(some.clients[0].test.labels))),
    )
    began = time.perf_counter()
    logits(some.model, some.clients[0].test.texts.take(rows))
    test = (time.perf_counter() - began) / len(rows) * tested
    return spent[-1] * len(lab.clients) / len(some.clients) + test


def _size(count: int) -> str:
    """Return a number of bytes as people write it.

    >>> _size(70_000), _size(3_500_000_000)
    ('0.1 MB', '3.5 GB')
    """
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
