"""What clients compute in one round: a gradient, or the change that their own optimiser makes in some steps."""

import numpy as np
import torch

from privkit.errors import DivergedError
from privkit.finetune.guard import Guard
from privkit.finetune.lab import Lab
from privkit.finetune.model import Weights
from privkit.finetune.optimizers import OPTIMIZERS
from privkit.finetune.server import rates
from privkit.finetune.terms import UploadKind

Change = dict[str, np.ndarray]


def changes(lab: Lab, guard: Guard, start: Weights, round: int) -> dict[int, Change]:
    """Return what each client's round changes: its gradient, or its weights after minus before, by parameter.

    With one step, and a defense that allows it, the records of all clients go through the model together.

    Raises:
        DivergedError: a number is not finite.
    """
    everybody = list(range(len(lab.clients)))
    if guard.alone or lab.config.local_steps > 1:
        found = {k: _stepwise(lab, guard, start, round, k) for k in everybody}
    else:
        lab.model.load(start)
        gradients = guard.gradients(lab.model, lab.batch(round, 0, everybody))
        found = {k: _one_step(lab, start, gradients[k]) for k in everybody}
    return {k: _finite(k, round, change) for k, change in found.items()}


def _one_step(lab: Lab, start: Weights, gradient: Weights) -> Weights:
    if lab.config.upload is UploadKind.GRADIENT:
        return gradient
    before = {name: w.to(lab.device) for name, w in start.items()}
    after = OPTIMIZERS[lab.config.optimizer](before).step(before, gradient, rates(lab.config, before))
    return {name: after[name] - w for name, w in before.items()}


def _stepwise(lab: Lab, guard: Guard, start: Weights, round: int, client: int) -> Weights:
    """Return the change that one client's steps make, one after the other, each on a batch of its own."""
    weights = before = {name: w.to(lab.device) for name, w in start.items()}
    optimizer = OPTIMIZERS[lab.config.optimizer](weights)
    for step in range(lab.config.local_steps):
        lab.model.load(weights)
        gradient = guard.gradients(lab.model, lab.batch(round, step, [client]))[client]
        if lab.config.upload is UploadKind.GRADIENT:
            return gradient
        weights = optimizer.step(weights, gradient, rates(lab.config, weights))
    return {name: weights[name] - w for name, w in before.items()}


def _finite(client: int, round: int, change: Weights) -> Change:
    for name, g in change.items():
        if not bool(torch.isfinite(g).all()):
            raise DivergedError(
                f"client {client}'s {name} is not finite in round {round + 1}; lower learning_rate or clip."
            )
    return {name: g.cpu().numpy() for name, g in change.items()}
