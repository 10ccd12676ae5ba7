"""The global weights of every round of a run, as the server sent them out."""

import itertools
from collections.abc import Iterator

import torch

from privkit.errors import InputError
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab
from privkit.finetune.model import Weights
from privkit.store import Run
from privkit.train.outbox import below


def lab_of(run: Run, *, device: torch.device | None = None) -> Lab:
    """Return what a run was computed from, from its settings.

    Raises:
        InputError: it is no run of the gradient lab, or data or backbone are no longer the same.
    """
    if run.info.seed is None or "backbone" not in run.info.config:
        raise InputError(f"{run.path} is no run of the gradient lab; give one that it trained.")
    config = FinetuneConfig.from_settings(dict(run.info.config), where=str(run.path / "run.json"))
    lab = Lab.open(config, seed=run.info.seed, device=device or torch.device("cpu"))
    other = next(
        (n for n in sorted({*lab.hashes, *run.info.data}) if lab.hashes.get(n) != run.info.data.get(n)), None
    )
    if other is not None:
        raise InputError(
            f"{run.path}: {other} is not what the run was trained with; restore the data and the backbone."
        )
    return lab


def weights(run: Run) -> Iterator[Weights]:
    """Yield the weights at the start of round 0, 1, ..., and after the last committed one.

    Raises:
        InputError: some were changed, or removed.
    """
    for round in range(run.completed):
        yield {name: torch.from_numpy(array) for name, array in run.broadcast(round).items()}
    if run.completed:
        server = below(run.state(run.completed), "server.weights.")
        yield {name: torch.from_numpy(array.copy()) for name, array in server.items()}


def weights_at(run: Run, round: int) -> Weights:
    """Return the global weights at the start of a round, by name; that after the last one gives the final ones.

    Raises:
        InputError: the run has not got so far, or see :func:`weights`.
    """
    if not 0 <= round <= run.completed:
        raise InputError(
            f"round={round}: {run.path} has weights of rounds 0 to {run.completed}; give one of them."
        )
    return next(itertools.islice(weights(run), round, None))
