"""Optimisers on stacked clients are torch's own, client by client."""

import copy

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from privkit.methods._base import LocalTraining
from privkit.train.optimizer import OPTIMIZERS, StackedAdamW, StackedOptimizer

ACTIVE = (4, 4, 3, 3, 2, 1, 1)  # clients that take each step
SHAPES = {"weight": (4, 5, 3), "bias": (4, 3)}
ADAMW = LocalTraining(learning_rate=0.1, weight_decay=0.5)
SGD = LocalTraining(optimizer="sgd", learning_rate=0.1, weight_decay=0.5)
MOMENTUM = LocalTraining(optimizer="sgd", learning_rate=0.1, weight_decay=0.5, momentum=0.9)
ALL = [ADAMW, SGD, MOMENTUM]


def drawn(seed: int, scale: float = 1.0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: scale * torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def started(params: dict[str, Tensor], setup: LocalTraining) -> StackedOptimizer:
    return OPTIMIZERS[setup.optimizer].start(params, setup)


def stacked(params: dict[str, Tensor], active: tuple[int, ...], setup: LocalTraining) -> StackedOptimizer:
    optimizer = started(params, setup)
    for step, k in enumerate(active):
        gradients = {name: g[:k] for name, g in drawn(100 + step, 10.0**-step).items()}
        optimizer.step(params, gradients, active=k, setup=setup)
    return optimizer


def alone(client: int, params: dict[str, Tensor], active: tuple[int, ...], setup: LocalTraining) -> None:
    """Train one client's slices with torch's own optimiser."""
    mine = {name: p[client].clone().requires_grad_(True) for name, p in params.items()}
    rate, decay = setup.learning_rate, setup.weight_decay
    theirs = (
        torch.optim.AdamW(mine.values(), lr=rate, weight_decay=decay)
        if setup.optimizer == "adamw"
        else torch.optim.SGD(mine.values(), lr=rate, momentum=setup.momentum, weight_decay=decay)
    )
    for step, k in enumerate(active):
        if client < k:
            for name, p in mine.items():
                p.grad = drawn(100 + step, 10.0**-step)[name][client]
            theirs.step()
    for name, p in mine.items():
        params[name][client] = p.detach()


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("weight_decay", [0.0, 5e-4, 0.3])
@pytest.mark.parametrize("learning_rate", [1e-3, 0.1])
def test_every_client_moves_as_under_torch(optimizer, learning_rate, weight_decay, momentum):
    setup = LocalTraining(
        optimizer=optimizer,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        momentum=momentum if optimizer == "sgd" else 0.0,
    )
    ours, theirs = drawn(0), drawn(0)
    stacked(ours, ACTIVE, setup)
    for client in range(4):
        alone(client, theirs, ACTIVE, setup)
    for name in SHAPES:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=1e-6)
        assert (ours[name] - drawn(0)[name]).abs().min() > 1e-6


def test_adamw_counts_every_clients_own_steps():
    optimizer = stacked(drawn(0), ACTIVE, ADAMW)
    assert isinstance(optimizer, StackedAdamW)
    assert optimizer.steps.tolist() == [7, 5, 4, 2]


@pytest.mark.parametrize("setup", ALL)
def test_inactive_clients_and_their_memory_stay_as_they_are_to_the_bit(setup):
    params = drawn(0)
    optimizer = stacked(params, (4, 4), setup)
    memory = [tensor for tensors in optimizer.memory().values() for tensor in tensors.values()]
    tensors = [*params.values(), *memory]
    before = [t.clone() for t in tensors]
    optimizer.step(params, {name: g[:2] for name, g in drawn(7).items()}, active=2, setup=setup)
    for now, then in zip(tensors, before, strict=True):
        assert torch.equal(now[2:], then[2:])
        assert not torch.equal(now[:2], then[:2])


@pytest.mark.parametrize(("setup", "kinds"), [(ADAMW, 3), (SGD, 0), (MOMENTUM, 1)])
def test_nothing_is_remembered_that_no_step_reads(setup, kinds):
    assert len(started(drawn(0), setup).memory()) == kinds


@pytest.mark.parametrize("setup", ALL)
def test_a_parameter_without_gradient_is_not_even_decayed(setup):
    params = drawn(0)
    started(params, setup).step(params, {"bias": drawn(1)["bias"]}, active=4, setup=setup)
    assert torch.equal(params["weight"], drawn(0)["weight"])
    assert not torch.equal(params["bias"], drawn(0)["bias"])


@pytest.mark.parametrize("setup", ALL)
def test_a_zero_gradient_only_decays(setup):
    params = drawn(0)
    zeros = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    started(params, setup).step(params, zeros, active=4, setup=setup)
    for name in SHAPES:
        torch.testing.assert_close(params[name], 0.95 * drawn(0)[name], rtol=0, atol=1e-6)


@pytest.mark.parametrize("setup", ALL)
def test_gradients_in_any_order_of_memory_are_read_right(setup):
    """torch's own fused kernels take a transposed gradient for a straight one, silently."""
    ours, theirs = drawn(0), drawn(0)
    gradient = drawn(1)["weight"]
    turned = gradient.mT.contiguous().mT
    assert not turned.is_contiguous()
    started(ours, setup).step(ours, {"weight": turned}, active=4, setup=setup)
    started(theirs, setup).step(theirs, {"weight": gradient}, active=4, setup=setup)
    assert torch.equal(ours["weight"], theirs["weight"])


@pytest.mark.parametrize("setup", ALL)
def test_kept_memory_carries_nothing_from_one_step_to_the_next(setup):
    """A step of few clients after one of all gives what it would give alone."""
    params = drawn(0)
    optimizer = stacked(params, (4, 4, 2, 1, 1), setup)
    again, fresh = {name: p.clone() for name, p in params.items()}, copy.deepcopy(optimizer)
    gradients = {name: g[:3] for name, g in drawn(9).items()}
    optimizer.step(params, gradients, active=3, setup=setup)
    fresh.step(again, gradients, active=3, setup=setup)
    assert all(torch.equal(params[name], again[name]) for name in params)


def test_momentum_without_sgd_is_refused():
    with pytest.raises(ValidationError, match=r"momentum 0.9 is SGD's; set optimizer: sgd"):
        LocalTraining(momentum=0.9)
