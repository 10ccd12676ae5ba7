"""Gradients by hand are what autograd finds."""

import pytest
import torch
from torch.nn import functional

from privkit.methods._by_hand import CrossEntropy, MeanSquare

G, B, C, D = 3, 5, 4, 6


def drawn(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_(True)


def labels_and_weights() -> tuple[torch.Tensor, torch.Tensor]:
    """Return classes, and weights of which some are zero."""
    y = torch.arange(G * B).view(G, B) % C
    weight = torch.linspace(0, 1, G * B, dtype=torch.float64).view(G, B)
    weight[1, 3:] = 0
    return y, weight


def test_cross_entropy_is_torchs_record_by_record():
    logits, (y, weight) = drawn(G, B, C), labels_and_weights()
    each = functional.cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(G, B)
    torch.testing.assert_close(CrossEntropy.apply(logits, y, weight), (each * weight).sum(1))
    assert torch.autograd.gradcheck(lambda x: CrossEntropy.apply(x, y, weight), [logits])


def test_mean_square_is_torchs_record_by_record():
    u, target, (_, weight) = drawn(G, B, D), drawn(G, B, D).detach().flip(0), labels_and_weights()
    each = functional.mse_loss(u, target, reduction="none").mean(-1)
    torch.testing.assert_close(MeanSquare.apply(u, target, weight), (each * weight).sum(1))
    assert torch.autograd.gradcheck(lambda x: MeanSquare.apply(x, target, weight), [u])


@pytest.mark.parametrize("size", [1e4, -1e4, 0.0])
def test_cross_entropy_of_huge_logits_is_finite(size):
    logits = torch.zeros(1, 2, 3, requires_grad=True)
    y, weight = torch.tensor([[0, 1]]), torch.full((1, 2), 0.5)
    loss = CrossEntropy.apply(logits + torch.tensor([size, 0.0, 0.0]), y, weight)
    (slope,) = torch.autograd.grad(loss.sum(), logits)
    assert loss.isfinite().all()
    assert slope.isfinite().all()
    torch.testing.assert_close(slope.sum(-1), torch.zeros(1, 2))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_arithmetic_is_at_least_float32_and_gradients_have_the_type_of_what_they_are_of(dtype):
    logits, (y, weight) = drawn(G, B, C, dtype=dtype), labels_and_weights()
    loss = CrossEntropy.apply(logits, y, weight.float())
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    (slope,) = torch.autograd.grad(loss.sum(), logits)
    assert slope.dtype == dtype
    u = drawn(G, B, D, dtype=dtype)
    distance = MeanSquare.apply(u, drawn(G, B, D, dtype=torch.float32).detach(), weight.float())
    assert distance.dtype == torch.promote_types(dtype, torch.float32)
    assert torch.autograd.grad(distance.sum(), u)[0].dtype == dtype
