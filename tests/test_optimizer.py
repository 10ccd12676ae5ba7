"""AdamW on stacked clients is torch's AdamW, client by client."""

import pytest
import torch
from torch import Tensor

from privkit.train.optimizer import StackedAdamW

ACTIVE = (4, 4, 3, 3, 2, 1, 1)  # clients that take each step
SHAPES = {"weight": (4, 5, 3), "bias": (4, 3)}


def drawn(seed: int, scale: float = 1.0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: scale * torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def stacked(params: dict[str, Tensor], active: tuple[int, ...], **setup: float) -> StackedAdamW:
    memory = StackedAdamW.start(params)
    for step, k in enumerate(active):
        gradients = {name: g[:k] for name, g in drawn(100 + step, 10.0**-step).items()}
        memory.step(params, gradients, active=k, **setup)
    return memory


def alone(client: int, params: dict[str, Tensor], active: tuple[int, ...], **setup: float) -> None:
    """Train one client's slices with torch's own optimiser."""
    mine = {name: p[client].clone().requires_grad_(True) for name, p in params.items()}
    torch_adamw = torch.optim.AdamW(
        mine.values(), lr=setup["learning_rate"], weight_decay=setup["weight_decay"]
    )
    for step, k in enumerate(active):
        if client < k:
            for name, p in mine.items():
                p.grad = drawn(100 + step, 10.0**-step)[name][client]
            torch_adamw.step()
    for name, p in mine.items():
        params[name][client] = p.detach()


@pytest.mark.parametrize("weight_decay", [0.0, 5e-4, 0.3])
@pytest.mark.parametrize("learning_rate", [1e-3, 0.1])
def test_every_client_moves_as_under_torch_adamw(learning_rate, weight_decay):
    ours, theirs = drawn(0), drawn(0)
    setup = {"learning_rate": learning_rate, "weight_decay": weight_decay}
    memory = stacked(ours, ACTIVE, **setup)
    for client in range(4):
        alone(client, theirs, ACTIVE, **setup)
    for name in SHAPES:
        torch.testing.assert_close(ours[name], theirs[name], rtol=0, atol=1e-6)
        assert (ours[name] - drawn(0)[name]).abs().min() > 1e-5
    assert memory.steps.tolist() == [7, 5, 4, 2]


def test_inactive_clients_and_their_memory_stay_as_they_are_to_the_bit():
    params = drawn(0)
    memory = stacked(params, (4, 4), learning_rate=0.01, weight_decay=0.1)
    tensors = {**params, **{f"first {n}": t for n, t in memory.first.items()}}
    tensors |= {f"second {n}": t for n, t in memory.second.items()} | {"steps": memory.steps}
    before = {name: t.clone() for name, t in tensors.items()}
    gradients = {name: g[:2] for name, g in drawn(7).items()}
    memory.step(params, gradients, active=2, learning_rate=0.01, weight_decay=0.1)
    for name, t in tensors.items():
        assert torch.equal(t[2:], before[name][2:])
        assert not torch.equal(t[:2], before[name][:2])


def test_a_parameter_without_gradient_is_not_even_decayed():
    params = drawn(0)
    memory = StackedAdamW.start(params)
    memory.step(params, {"bias": drawn(1)["bias"]}, active=4, learning_rate=0.1, weight_decay=0.5)
    assert torch.equal(params["weight"], drawn(0)["weight"])
    assert not torch.equal(params["bias"], drawn(0)["bias"])


def test_a_zero_gradient_only_decays():
    params = drawn(0)
    zeros = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    StackedAdamW.start(params).step(params, zeros, active=4, learning_rate=0.1, weight_decay=0.5)
    for name in SHAPES:
        torch.testing.assert_close(params[name], 0.95 * drawn(0)[name], rtol=0, atol=1e-6)


def test_gradients_in_any_order_of_memory_are_read_right():
    """torch's own fused AdamW takes a transposed gradient for a straight one, silently."""
    ours, theirs = drawn(0), drawn(0)
    setup = {"learning_rate": 0.1, "weight_decay": 0.0}
    gradient = drawn(1)["weight"]
    turned = gradient.mT.contiguous().mT
    assert not turned.is_contiguous()
    StackedAdamW.start(ours).step(ours, {"weight": turned}, active=4, **setup)
    StackedAdamW.start(theirs).step(theirs, {"weight": gradient}, active=4, **setup)
    assert torch.equal(ours["weight"], theirs["weight"])


def test_kept_memory_carries_nothing_from_one_step_to_the_next():
    """A step of few clients after one of all gives what it would give alone."""
    params = drawn(0)
    memory = stacked(params, (4, 4, 2, 1, 1), learning_rate=0.1, weight_decay=0.1)
    again = {name: p.clone() for name, p in params.items()}
    fresh = StackedAdamW(
        first={name: m.clone() for name, m in memory.first.items()},
        second={name: v.clone() for name, v in memory.second.items()},
        steps=memory.steps.clone(),
    )
    gradients = {name: g[:3] for name, g in drawn(9).items()}
    memory.step(params, gradients, active=3, learning_rate=0.1, weight_decay=0.1)
    fresh.step(again, gradients, active=3, learning_rate=0.1, weight_decay=0.1)
    assert all(torch.equal(params[name], again[name]) for name in params)
