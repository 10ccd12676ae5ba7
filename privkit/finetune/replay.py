"""The global weights of every round of a run, computed again from what its clients sent."""

from collections.abc import Iterator

import torch

from privkit.errors import InputError
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab
from privkit.finetune.model import Weights
from privkit.finetune.server import Server
from privkit.release import Update
from privkit.store import Run


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


def weights(run: Run, lab: Lab) -> Iterator[Weights]:
    """Yield the weights at the start of round 0, 1, ..., and after the last committed one.

    Raises:
        InputError: an upload is missing, was changed, or does not fit the model.
    """
    server = Server(lab.start, lab.config)
    yield server.weights
    by_round: dict[int, dict[int, Update]] = {}
    for release in run.transcript().releases:
        if isinstance(release.payload, Update):
            by_round.setdefault(release.round, {})[release.client] = release.payload
    for round in range(run.completed):
        sent = by_round.get(round, {})
        if len(sent) < len(run.info.clients):
            raise InputError(f"{run.path}: round {round} lacks uploads, so later weights are not known.")
        server.merge(sent, {0: 1.0} if lab.config.secure_aggregation else lab.shares)
        yield server.weights


def weights_at(run: Run, round: int, *, lab: Lab | None = None) -> Weights:
    """Return the global weights at the start of a round, by name; that after the last one gives the final ones.

    Raises:
        InputError: the run has not got so far, or see :func:`weights`.
    """
    if not 0 <= round <= run.completed:
        raise InputError(
            f"round={round}: {run.path} has weights of rounds 0 to {run.completed}; give one of them."
        )
    for found, named in enumerate(weights(run, lab or lab_of(run))):
        if found == round:
            return named
    raise AssertionError("every round up to the last committed one was yielded")
