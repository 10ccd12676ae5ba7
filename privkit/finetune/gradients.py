"""The gradients of many clients from one forward and one backward pass over all of their batches."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from privkit.finetune.batches import Batch
from privkit.finetune.model import Tuned, Weights, passes
from privkit.finetune.trace import refuse_no_class
from privkit.finetune.watched import watched

OwnedLosses = Callable[[Tensor, Tensor, np.ndarray], Tensor]
"""Logits [N, C], labels [N] and clients [N] to the loss of each record [N]."""


def client_gradients(model: Tuned, batch: Batch, losses: OwnedLosses) -> dict[int, Weights]:
    """Return the gradient of each client's mean loss, by client and parameter.

    Every trained parameter belongs to a linear map, so its gradient is made of inputs and slopes; a client's tokens are
    multiplied and summed in one product.
    """
    zero = {name: torch.zeros_like(p) for name, p in model.trained().items()}
    found = {client: {name: z.clone() for name, z in zero.items()} for client in batch.sizes}
    linear = _trained_maps(model)
    with watched(linear) as seen:
        for rows, ids, lengths in passes(model, batch.texts):
            seen.clear()
            logits_NC = model(ids, lengths)
            refuse_no_class(batch.labels[rows], classes=logits_NC.shape[1])
            y = torch.from_numpy(batch.labels[rows]).to(ids.device)
            total = losses(logits_NC, y, batch.clients[rows]).sum()
            slopes = torch.autograd.grad(total, [out for _, out in seen.values()])
            for (name, (x, _)), s in zip(seen.items(), slopes, strict=True):
                _add(found, name, linear[name], x, s, batch.clients[rows])
    return {
        client: {name: g / batch.sizes[client] for name, g in named.items()}
        for client, named in found.items()
    }


def _trained_maps(model: Tuned) -> dict[str, nn.Linear]:
    """Return every map with a trained weight or bias, by its name."""
    return {
        name: m
        for name, m in model.named_modules()
        if isinstance(m, nn.Linear) and any(p.requires_grad for p in m.parameters(recurse=False))
    }


def _add(
    found: dict[int, Weights], name: str, module: nn.Linear, x: Tensor, slopes: Tensor, owners: np.ndarray
) -> None:
    for client in np.unique(owners).tolist():
        own = torch.from_numpy(np.flatnonzero(owners == client)).to(x.device)
        s, given = slopes[own].flatten(0, -2), x[own].flatten(0, -2)
        if module.weight.requires_grad:
            found[client][f"{name}.weight"] += s.T @ given
        if module.bias is not None and module.bias.requires_grad:
            found[client][f"{name}.bias"] += s.sum(0)


def clipped(gradient: Weights, clip: float | None) -> Weights:
    """Return a gradient whose norm over all parameters is at most ``clip``."""
    if clip is None:
        return gradient
    norm = float(torch.linalg.vector_norm(torch.stack([g.double().norm() for g in gradient.values()])))
    factor = min(1.0, clip / norm) if norm else 1.0
    return {name: g * factor for name, g in gradient.items()}
