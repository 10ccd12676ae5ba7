"""Local training of every client of a batch at once."""

import torch
from torch import Tensor

from privkit.batch import Batch
from privkit.defenses._local import LocalRule
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod
from privkit.personal import PersonalModel
from privkit.train.cohort import Cohort
from privkit.train.optimizer import StackedAdamW


def train_round(
    round: int,
    *,
    method: AbstractMethod,
    model: PersonalModel,
    cohort: Cohort,
    rule: LocalRule,
    memory: dict[str, Tensor],
    params: dict[str, Tensor],
    optimizer: StackedAdamW,
    down: dict[str, Tensor],
) -> None:
    """Train every client for one round, in place: parameters, optimiser and the rule's memory.

    Clients own disjoint slices, so the gradient of the summed loss is every client's own gradient.

    Raises:
        InputError: a parameter is no longer finite.
    """
    setup = method.training
    rows, weights, active = cohort.batches(round, epochs=setup.epochs, size=setup.batch_size)
    for step, k in enumerate(active.tolist()):
        batch = _batch(cohort, rows[step, :k], weights[step, :k])
        live = {name: p[:k].detach().requires_grad_(True) for name, p in params.items()}
        kept = {name: m[:k] for name, m in memory.items()}
        z_GBd = model.embed(live, batch.x)
        loss = method.loss(model, live, rule.bound(z_GBd), batch, {name: d[:k] for name, d in down.items()})
        loss = loss + rule.loss(model, live, kept, z_GBd, batch)
        found = torch.autograd.grad(loss.sum(), list(live.values()), allow_unused=True)
        gradients = {name: g for name, g in zip(live, found, strict=True) if g is not None}
        optimizer.step(
            params,
            gradients,
            active=k,
            learning_rate=setup.learning_rate,
            weight_decay=setup.weight_decay,
        )
        rule.after_step(params, memory, active=k)
    _refuse_divergence(round, cohort, params)


def _refuse_divergence(round: int, cohort: Cohort, params: dict[str, Tensor]) -> None:
    for name, p in params.items():
        finite_G = p.flatten(1).isfinite().all(1).tolist()
        if not all(finite_G):
            client = cohort.clients[finite_G.index(False)]
            raise InputError(
                f"training diverged: {name} of client {client.index} (seed {client.seed}) is not finite after "
                f"round {round}; lower method.training.learning_rate."
            )


def _batch(cohort: Cohort, rows_kB: Tensor, weight_kB: Tensor) -> Batch:
    clients = torch.arange(len(rows_kB), device=rows_kB.device).unsqueeze(1)
    return Batch(x=cohort.x[clients, rows_kB], y=cohort.y[clients, rows_kB], weight=weight_kB)


@torch.no_grad()
def accuracy(
    *,
    method: AbstractMethod,
    model: PersonalModel,
    cohort: Cohort,
    params: dict[str, Tensor],
    down: dict[str, Tensor],
) -> list[float]:
    """Return each client's share of its own test records that are classified right, in stacked order."""
    predicted = method.logits(model, params, cohort.x_test, down).argmax(-1)
    real = torch.arange(predicted.shape[1], device=predicted.device) < torch.as_tensor(
        cohort.n_test, device=predicted.device
    ).unsqueeze(1)
    right = ((predicted == cohort.y_test) & real).sum(1).cpu().numpy()
    return (right / cohort.n_test).tolist()
