"""Rotations by the Cayley transform: torch's own as oracle, the laws of a rotation, and no matrix that has none."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.cayley import cayley, rotate, skew

SHAPES = st.tuples(
    st.integers(1, 3), st.integers(1, 4), st.integers(1, 9)
)  # clients, blocks, width of a block
SIZES = st.sampled_from([0.0, 0.01, 1.0, 30.0])


def drawn(shape: tuple[int, ...], seed: int, size: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(size * np.random.default_rng(seed).standard_normal(shape))


def dense(blocks: torch.Tensor) -> torch.Tensor:
    """Return one client's blocks as a whole matrix."""
    return torch.block_diag(*blocks)


def test_it_is_torchs_own_cayley_map_of_a_lower_triangle():
    """torch keeps the lower triangle of its parameter and takes half of A - A^T: the same numbers, the same matrix."""
    own = torch.nn.Linear(7, 7, bias=False).double()
    torch.nn.init.eye_(own.weight)
    torch.nn.utils.parametrizations.orthogonal(own, orthogonal_map="cayley")
    x = drawn((7, 7), 0).tril(-1)
    with torch.no_grad():
        own.parametrizations["weight"].original.copy_(x)  # type: ignore[index]
    torch.testing.assert_close(cayley(x), own.weight.detach(), rtol=0, atol=1e-13)
    assert (cayley(x) - torch.eye(7)).abs().max() > 0.1


@given(SHAPES, SIZES, st.integers(0, 99))
def test_it_is_a_rotation_whatever_the_matrix(shape, size, seed):
    clients, blocks, width = shape
    q = cayley(drawn((clients, blocks, width, width), seed, size))
    torch.testing.assert_close(q.mT @ q, torch.eye(width).double().expand_as(q), rtol=0, atol=1e-10)
    torch.testing.assert_close(torch.linalg.det(q), torch.ones(clients, blocks).double(), rtol=0, atol=1e-9)


@given(SHAPES, SIZES, st.integers(0, 99))
def test_what_is_solved_is_never_singular(shape, size, seed):
    """Singular values of I - R are sqrt(1 + w^2) with i w the eigenvalues of R: at least 1."""
    clients, blocks, width = shape
    r = skew(drawn((clients, blocks, width, width), seed, size))
    torch.testing.assert_close(r, -r.mT, rtol=0, atol=0)
    assert torch.linalg.svdvals(torch.eye(width) - r).min() >= 1 - 1e-10


def test_no_matrix_gives_a_reflection():
    """Towards infinite X, eigenvalues go to -1 in pairs: the determinant stays 1."""
    for size in (1e2, 1e4, 1e6):
        q = cayley(size * torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double())
        assert torch.linalg.det(q).item() == pytest.approx(1.0)
    assert (q + torch.eye(2)).abs().max() < 1e-4


@given(SHAPES, SIZES, st.integers(0, 99), st.integers(1, 12))
def test_rows_are_rotated_whether_the_matrix_is_made_or_not(shape, size, seed, rows):
    clients, blocks, width = shape
    x, h = (
        drawn((clients, blocks, width, width), seed, size),
        drawn((clients, rows, blocks * width), seed + 1),
    )
    found = rotate(x, h)
    for g in range(clients):
        torch.testing.assert_close(found[g], h[g] @ dense(cayley(x[g])).mT, rtol=1e-9, atol=1e-9)


@given(SHAPES, st.integers(0, 99), st.integers(1, 12))
def test_lengths_and_inner_products_are_kept(shape, seed, rows):
    """P1."""
    clients, blocks, width = shape
    x, h = drawn((clients, blocks, width, width), seed), drawn((clients, rows, blocks * width), seed + 1)
    found = rotate(x, h)
    torch.testing.assert_close(found @ found.mT, h @ h.mT, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rows", [3, 9])
def test_gradients_do_not_depend_on_whether_the_matrix_is_made(rows):
    x, h = drawn((2, 2, 4, 4), 0).requires_grad_(True), drawn((2, rows, 8), 1)
    assert torch.autograd.gradcheck(lambda free: rotate(free, h).square()[..., 0], (x,))


def test_zeros_are_the_identity_bit_for_bit():
    h = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    for blocks in (1, 3):
        x = torch.zeros(2, blocks, 12 // blocks, 12 // blocks)
        assert torch.equal(rotate(x, h), h)


def test_blocks_of_width_one_rotate_nothing():
    """P3: r = d leaves no rotation, whatever X."""
    h = drawn((2, 5, 6), 0)
    torch.testing.assert_close(rotate(drawn((2, 6, 1, 1), 1), h), h, rtol=0, atol=1e-12)


def test_it_stays_orthogonal_in_float32_over_a_thousand_steps():
    a, b, x = drawn((1, 32, 64), 0).float(), drawn((1, 32, 64), 1).float(), drawn((1, 1, 64, 64), 2).float()
    free = (0.1 * x).requires_grad_(True)
    optimizer = torch.optim.AdamW([free], lr=1e-2)
    for _ in range(1_000):
        optimizer.zero_grad()
        (rotate(free, a) - b).square().mean().backward()
        optimizer.step()
    q = cayley(free.detach())
    assert (q.mT @ q - torch.eye(64)).abs().max() <= 1e-5
    assert (q - torch.eye(64)).abs().max() > 0.5
