"""The rotation between two sets of vectors: exact where they are, least where they say nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from attacks._procrustes import degrees_apart, procrustes, rotation_of, turned


def rotations(rng: np.random.Generator, blocks: int, width: int) -> np.ndarray:
    """Draw rotations of determinant 1."""
    q_rbb = np.linalg.qr(rng.standard_normal((blocks, width, width)))[0]
    q_rbb[:, 0] *= np.sign(np.linalg.det(q_rbb))[:, None]
    return q_rbb


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 9), st.integers(-1, 10))
def test_exact_rows_that_span_all_but_one_direction_give_the_very_rotation(seed, blocks, width, more):
    """d - 1 directions are enough: the determinant decides the last."""
    rng = np.random.default_rng(seed)
    q_rbb = rotations(rng, blocks, width)
    raw = rng.standard_normal((max(width + more, 1), blocks * width))
    found = procrustes(raw, turned(q_rbb, raw), blocks=blocks)
    np.testing.assert_allclose(found, q_rbb, atol=1e-6)
    assert degrees_apart(found, q_rbb) < 1e-2
    np.testing.assert_allclose(np.linalg.det(found), 1.0, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 12))
def test_it_is_scipys_where_no_reflection_is_better(seed, width):
    rng = np.random.default_rng(seed)
    raw = rng.standard_normal((2 * width, width))
    noisy = raw @ rotations(rng, 1, width)[0].T + 0.1 * rng.standard_normal(raw.shape)
    theirs = orthogonal_procrustes(raw, noisy)[0].T
    if np.linalg.det(theirs) > 0:
        np.testing.assert_allclose(procrustes(raw, noisy)[0], theirs, atol=1e-8)


def test_no_rotation_nearby_is_better_even_where_a_reflection_would_be():
    rng = np.random.default_rng(0)
    raw = rng.standard_normal((9, 5))
    mirrored = raw * np.array([1.0, 1, 1, 1, -1])
    found = procrustes(raw, mirrored)
    assert np.linalg.det(found[0]) == pytest.approx(1.0)
    least = np.linalg.norm(turned(found, raw) - mirrored)
    for _ in range(200):
        a = 0.05 * rng.standard_normal((5, 5))
        near = np.linalg.solve(np.eye(5) - (a - a.T), np.eye(5) + (a - a.T)) @ found[0]
        assert np.linalg.norm(turned(near[None], raw) - mirrored) >= least - 1e-9


def test_what_is_not_seen_is_left_as_it_is():
    """Three rows in twelve dimensions: their span is turned as it was, and a vector outside of both spans is not."""
    rng = np.random.default_rng(1)
    q_1dd = rotations(rng, 1, 12)
    raw = np.linalg.qr(rng.standard_normal((12, 3)))[0].T
    found = procrustes(raw, turned(q_1dd, raw), pull=1e-6)
    np.testing.assert_allclose(turned(found, raw), turned(q_1dd, raw), atol=1e-4)
    seen = np.concatenate([raw, turned(q_1dd, raw)])
    outside = np.linalg.svd(seen)[2][6:]
    np.testing.assert_allclose(turned(found, outside), outside, atol=1e-4)
    assert degrees_apart(procrustes(raw, turned(q_1dd, raw), pull=1e6), np.eye(12)[None]) < 0.1


def test_nothing_is_no_turning():
    assert (rotation_of(np.zeros((3, 4, 4))) == np.eye(4)).all()


def test_degrees_are_those_of_a_plane_turned():
    for degrees in (0.0, 30.0, 90.0, 180.0):
        angle = np.radians(degrees)
        plane = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        assert degrees_apart(plane[None], np.eye(2)[None]) == pytest.approx(degrees, abs=1e-5)
