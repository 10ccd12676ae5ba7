"""SGD with the backward pass by hand: gradients of weights are added to them as they are made, and never stored.

autograd goes from the loss to embeddings and logits. Below these are an adapter and a linear head, whose gradients are
products of matrices: BLAS multiplies, scales and adds in one pass over the weights. A loss that uses parameters in
another way too has that part of its gradient from autograd.

Shapes: G clients, B records, d embedding width, C classes.
"""

import torch
from torch import Tensor

from privkit.batch import Batch
from privkit.defenses._local import AsPublished, LocalRule
from privkit.methods._base import AbstractMethod, LocalTraining
from privkit.methods._down import Down
from privkit.network import Network


def applies(network: Network, rule: LocalRule, setup: LocalTraining) -> bool:
    """Return whether clients train an adapter and a linear head by plain SGD, as the method's paper has it."""
    model = network.settings
    plain = type(network) is Network and model.adapter is not None and not model.hidden and not model.dropout
    plain = plain and model.temperature is None
    return plain and type(rule) is AsPublished and setup.optimizer == "sgd" and not setup.momentum


@torch.no_grad()
def descend(
    network: Network,
    params: dict[str, Tensor],
    method: AbstractMethod,
    batch: Batch,
    down: Down,
    setup: LocalTraining,
) -> None:
    """Take one step of SGD on some clients' batches, in place.

    Args:
        network: what is trained; :func:`applies` says which.
        params: these clients' parameters.
        method: whose loss it is.
        batch: the records.
        down: what each client got from the server.
        setup: step size and weight decay.
    """
    hidden_GBr = torch.bmm(batch.x, params["adapter.down"]).relu_()
    z_GBd = torch.baddbmm(batch.x, hidden_GBr, params["adapter.up"])
    logits_GBC = torch.baddbmm(params["head.bias"].unsqueeze(1), z_GBd, params["head.weight"])
    slope_z, slope_logits, others = _slopes(network, params, method, (z_GBd, logits_GBC), batch, down)
    step = _Step(params, setup)
    if slope_logits is not None:
        slope_z = slope_z.baddbmm(slope_logits, params["head.weight"].mT)
        step.product("head.weight", z_GBd, slope_logits)
        step.gradient("head.bias", slope_logits.sum(1))
    slope_hidden = torch.bmm(slope_z, params["adapter.up"].mT).mul_(hidden_GBr > 0)
    step.product("adapter.up", hidden_GBr, slope_z)
    step.product("adapter.down", batch.x, slope_hidden)
    for name, gradient in others.items():
        step.gradient(name, gradient)


class _Step:
    """Moves parameters in place along gradients; each shrinks once, with the first of its own."""

    def __init__(self, params: dict[str, Tensor], setup: LocalTraining) -> None:
        self._params, self._rate = params, setup.learning_rate
        self._decay = dict.fromkeys(params, 1 - setup.learning_rate * setup.weight_decay)

    def product(self, name: str, inputs: Tensor, slopes: Tensor) -> None:
        """Go along the gradient of weights, ``inputs^T slopes``."""
        decay = self._decay.pop(name, 1.0)
        self._params[name].baddbmm_(inputs.mT, slopes, beta=decay, alpha=-self._rate)

    def gradient(self, name: str, gradient: Tensor) -> None:
        """Go along a gradient."""
        self._params[name].mul_(self._decay.pop(name, 1.0)).sub_(gradient, alpha=self._rate)


def _slopes(
    network: Network,
    params: dict[str, Tensor],
    method: AbstractMethod,
    given: tuple[Tensor, Tensor],
    batch: Batch,
    down: Down,
) -> tuple[Tensor, Tensor | None, dict[str, Tensor]]:
    """Return the loss's derivative by embeddings, by logits if it uses them, and by parameters that it uses besides."""
    z_GBd, logits_GBC = (tensor.requires_grad_(True) for tensor in given)
    live = {name: p.detach().requires_grad_(True) for name, p in params.items()}
    with torch.enable_grad():
        loss = method.loss(network.with_logits(live, z_GBd, logits_GBC), live, z_GBd, batch, down).sum()
    found = torch.autograd.grad(loss, [z_GBd, logits_GBC, *live.values()], allow_unused=True)
    for tensor in given:
        tensor.requires_grad_(False)
    slope_z = torch.zeros_like(z_GBd) if found[0] is None else found[0]
    others = {name: g for name, g in zip(live, found[2:], strict=True) if g is not None}
    return slope_z, found[1], others
