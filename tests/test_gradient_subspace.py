"""Row spaces of gradients: the theory of FISGuard as examples, rank laws, and what coarse numbers leave."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attacks.gradient._pivoted import row_basis
from attacks.gradient._precision import Floor, floor_of, known_noise_factor, median_factor
from attacks.gradient._residual import TIE, relative_residuals, residuals
from attacks.gradient._subspace import Subspace, subspace
from attacks.statistics.auc import auc
from tests.gradient_lab import rounded

F32 = np.dtype(np.float32)


def space(gradient: object, *, transport: str = "fp32", rank: int | None = None) -> Subspace:
    g = np.array(gradient, dtype=float)
    return subspace(g, floor_of(g, transport=transport, stored=F32), rank=rank)


def left(gradient: object, *vectors: object, order: int = 2) -> np.ndarray:
    rows = np.array(vectors, dtype=float)
    return residuals(rows, space(gradient).basis, order=1 if order == 1 else 2)


# ---------------------------------------------------------------------- T1 to T8 of FISGuard, with its numbers


def test_t1_full_rank_leaves_no_residual():
    deltas, inputs = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]]), np.array([[1, 0, 1], [0, 2, 1]])
    gradient = deltas @ inputs.T
    np.testing.assert_array_equal(gradient, [[2, 1], [1, 3], [1, 2]])
    found = space(gradient)
    assert (found.rank, found.informative, found.saturation) == (2, False, 1.0)
    for order in (1, 2):
        np.testing.assert_allclose(left(gradient, (3, -5), order=order), 0.0, atol=1e-15)


def test_t2_scores_that_are_all_tied_have_an_auc_of_exactly_one_half():
    assert auc([0.0] * 7, [0.0] * 5).value == 0.5


def test_t3_slopes_that_cancel_lose_a_direction():
    gradient = np.array([[1, 1], [2, 2], [0, 0]])
    assert space(gradient).rank == 1
    assert space(gradient).rows == 2  # a dead unit
    np.testing.assert_allclose(left(gradient, (1, 0), (1, 1), (1, -1), order=1), [1, 0, 2], atol=1e-12)
    np.testing.assert_allclose(left(gradient, (1, 0)), 0.5**0.5)


@given(seed=st.integers(0, 10_000), r=st.integers(1, 6), tokens=st.integers(1, 8), m=st.integers(1, 8))
@settings(max_examples=60, deadline=None)
def test_t3_rank_is_that_of_inputs_less_what_slopes_cancel(seed, r, tokens, m):
    rng = np.random.default_rng(seed)
    deltas, inputs = (
        rng.integers(-2, 3, (m, tokens)).astype(float),
        rng.integers(-2, 3, (r, tokens)).astype(float),
    )
    # dim(ker D n col Z^T) = dim ker D + rank Z - rank [ker D, Z^T]
    _, values, vt = np.linalg.svd(deltas)
    kernel = vt[int((values > 1e-9).sum()) :].T
    rank_z = np.linalg.matrix_rank(inputs)
    joint = np.linalg.matrix_rank(np.concatenate([kernel, inputs.T], axis=1))
    expected = rank_z - (kernel.shape[1] + rank_z - joint)
    assert space(deltas @ inputs.T).rank == expected


def test_t4_fewer_tokens_than_directions_leave_a_residual():
    gradient = np.outer([1, 2], [3, 4])
    np.testing.assert_array_equal(gradient, [[3, 4], [6, 8]])
    np.testing.assert_allclose(left(gradient, (3, 4), (4, -3), order=1), [0, 7], atol=1e-12)
    np.testing.assert_allclose(left(gradient, (4, -3)), 5)


def test_t5_an_undefended_map():
    inputs, deltas = np.array([[1, 0, 0, 0], [0, 1, 1, 0]]), np.array([[1, 1], [1, -1]])
    gradient = deltas @ inputs
    np.testing.assert_allclose(
        left(gradient, *inputs, (0, 1, -1, 0), (0, 1, 0, 0), order=1), [0, 0, 2, 1], atol=1e-12
    )
    np.testing.assert_allclose(left(gradient, (0, 1, 0, 0)), 0.5**0.5)


def test_t6_a_factor_that_starts_at_zero_passes_no_gradient():
    up, delta, inner = np.zeros((2, 2)), np.array([0.5, -0.25]), np.array([1.0, 2.0])
    down_gradient = np.outer(up.T @ delta, [7.0, 8.0, 9.0])
    found = space(down_gradient)
    assert (found.rank, found.rows, found.informative, found.saturation) == (0, 0, False, 0.0)
    np.testing.assert_array_equal(np.outer(delta, inner), [[0.5, 1.0], [-0.25, -0.5]])
    assert space(np.outer(delta, inner)).rank == 1


@given(seed=st.integers(0, 10_000), classes=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_t7_slopes_behind_a_linear_head_span_one_direction_less_than_classes(seed, classes):
    rng = np.random.default_rng(seed)
    head, inputs = rng.standard_normal((classes, 24)), rng.standard_normal((16, 12))
    errors = rng.dirichlet(np.ones(classes), 16) - np.eye(classes)[rng.integers(0, classes, 16)]
    assert space((errors @ head).T @ inputs).rank <= classes - 1


# ---------------------------------------------------------------------- rank


@given(
    seed=st.integers(0, 10_000),
    shape=st.sampled_from([(40, 60), (60, 40), (160, 200), (200, 160), (300, 520), (520, 140)]),
    share=st.floats(0.02, 1.2),
)
@settings(max_examples=25, deadline=None)
def test_as_many_directions_as_tokens_until_there_are_none_left(seed, shape, share):
    rng = np.random.default_rng(seed)
    m, d = shape
    tokens = max(1, int(share * min(shape)))
    slopes, inputs = (rng.standard_normal((tokens, k)).astype(np.float32) for k in (m, d))
    found = space((slopes.T @ inputs).astype(np.float64) * 10.0 ** rng.integers(-9, 9))
    if (
        tokens < min(shape) * 0.98 or tokens > min(shape) * 1.02
    ):  # at the edge singular values come close to 0
        assert found.rank == min(tokens, *shape)
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(found.rank), atol=1e-8)
    if tokens < d * 0.98 and tokens <= m * 0.98:
        assert (relative_residuals(inputs, found.basis.astype(np.float32)) == 0).all()
        others = rng.standard_normal((50, d)).astype(np.float32)
        expected = np.sqrt(1 - tokens / d)
        assert relative_residuals(others, found.basis.astype(np.float32)).mean() == pytest.approx(
            expected, abs=4 / np.sqrt(d) / 5
        )


@pytest.mark.parametrize("shape", [(150, 260), (260, 150), (300, 520)])
@pytest.mark.parametrize("tokens", [5, 60, 140])
def test_pivots_span_what_singular_vectors_span(shape, tokens):
    rng = np.random.default_rng(tokens)
    gradient = rng.standard_normal((shape[0], tokens)) @ rng.standard_normal((tokens, shape[1]))
    basis = row_basis(gradient, relative=1e-5)
    oracle = np.linalg.svd(gradient)[2][:tokens]
    np.testing.assert_allclose(basis.T @ basis, oracle.T @ oracle, atol=1e-8)


def test_dead_units_change_nothing():
    rng = np.random.default_rng(0)
    gradient = rng.standard_normal((150, 12)) @ rng.standard_normal((12, 200))
    dead = np.concatenate([gradient[:70], np.zeros((20, 200)), gradient[70:]])
    a, b = space(gradient), space(dead)
    assert (a.rank, b.rank, b.rows) == (12, 12, 150)
    np.testing.assert_allclose(a.basis.T @ a.basis, b.basis.T @ b.basis, atol=1e-9)


@pytest.mark.parametrize("transport", ["fp32", "fp16", "bf16", "int8"])
@pytest.mark.parametrize("tokens", [1, 8, 16, 40])
def test_coarse_numbers_keep_the_rank_that_they_can_carry(transport, tokens):
    rng = np.random.default_rng(tokens)
    slopes, inputs = (rng.standard_normal((tokens, k)).astype(np.float32) for k in (192, 384))
    sent = rounded(slopes.T @ inputs, transport)
    found = space(sent, transport=transport)
    # numbers of an outer product are rounded away in rows and columns, which is no independent noise
    assert tokens <= found.rank <= (tokens if tokens > 1 else 16)
    member = relative_residuals(inputs, found.basis).max()
    other = relative_residuals(rng.standard_normal((50, 384)), found.basis).min()
    assert member < 0.2 < 0.8 < other


def test_a_full_rank_map_stays_saturated_in_coarse_numbers():
    rng = np.random.default_rng(1)
    sent = rounded(
        (rng.standard_normal((192, 400)) @ rng.standard_normal((400, 16))).astype(np.float32), "bf16"
    )
    assert space(sent, transport="bf16").rank == 16


def test_noise_of_unknown_size_is_told_by_the_median():
    rng = np.random.default_rng(2)
    clean = rng.standard_normal((192, 10)) @ rng.standard_normal((10, 384))
    noisy = clean + 0.3 * rng.standard_normal(clean.shape)
    floor = floor_of(noisy, transport="fp32", stored=F32, unknown_noise=True)
    assert subspace(noisy, floor).rank == 10
    pure = rng.standard_normal((192, 384))
    assert subspace(pure, floor_of(pure, transport="fp32", stored=F32, unknown_noise=True)).rank == 0
    assert subspace(pure, floor_of(pure, transport="fp32", stored=F32, std=1.0)).rank == 0


def test_a_rank_can_be_given_and_is_never_above_what_is_there():
    rng = np.random.default_rng(3)
    gradient = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 40))
    assert space(gradient, rank=4).rank == 4
    assert space(gradient, rank=20).rank == 6


def test_factors_of_gavish_and_donoho():
    assert known_noise_factor(1.0) == pytest.approx(4 / 3**0.5, rel=1e-12)
    assert known_noise_factor(1e-9) == pytest.approx(2**0.5, rel=1e-4)
    assert median_factor(1.0) == pytest.approx(2.858, abs=0.01)
    assert Floor(1e-5).rank(np.zeros(3), shape=(3, 4)) == 0


def test_half_precision_numbers_count_as_such_whatever_is_declared():
    g = np.random.default_rng(0).standard_normal((20, 30))
    declared = floor_of(g, transport="fp16", stored=F32)
    assert floor_of(g, transport="fp32", stored=np.dtype(np.float16)) == declared
    assert not declared.lossless
    with pytest.raises(ValueError, match="transport='fp8' is unknown; known are fp32, fp16, bf16, int8"):
        floor_of(g, transport="fp8", stored=F32)


# ---------------------------------------------------------------------- residuals


def test_rounding_errors_are_ties_and_more_is_not():
    basis = np.eye(3)[:1]
    vectors = np.array([[1.0, 0.5 * TIE, 0], [1.0, 2 * TIE, 0], [0, 0, 0]])
    found = residuals(vectors, basis)
    assert found[0] == 0
    assert found[1] == pytest.approx(2 * TIE)
    np.testing.assert_array_equal(relative_residuals(vectors, basis)[[0, 2]], 0)


@given(seed=st.integers(0, 1000), k=st.integers(0, 12))
@settings(max_examples=30, deadline=None)
def test_residuals_are_what_least_squares_leaves(seed, k):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((12, k)))[0].T.reshape(k, 12)
    h = rng.standard_normal((5, 12))
    wanted = h.T - basis.T @ np.linalg.lstsq(basis.T, h.T, rcond=None)[0] if k else h.T
    wanted = np.where(np.abs(wanted) < 1e-12, 0, wanted)
    np.testing.assert_allclose(residuals(h, basis), np.linalg.norm(wanted, axis=0), atol=1e-9)
    np.testing.assert_allclose(residuals(h, basis, order=1), np.abs(wanted).sum(0), atol=1e-9)
    one, two = relative_residuals(h, basis, order=1), relative_residuals(h, basis)
    assert (one <= two + 1e-12).all()
    assert (two <= 1 + 1e-12).all()
