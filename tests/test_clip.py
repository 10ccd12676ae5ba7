"""Clipping bounds every record and changes no direction."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privkit.clip import clip_to_ball, unit
from tests import draw

norms = st.floats(1e-3, 1e3)


@settings(max_examples=40)
@given(draw.matrices(), norms)
def test_no_row_is_longer_than_the_ball_and_short_rows_stay(vectors: np.ndarray, norm: float) -> None:
    clipped = clip_to_ball(vectors, norm=norm)
    for row, given_row in zip(clipped, vectors.astype(np.float64), strict=True):
        length = math.hypot(*given_row)
        if length <= norm:
            assert row == pytest.approx(given_row, rel=1e-15)
        else:
            assert row == pytest.approx(given_row * (norm / length), rel=1e-12, abs=1e-300)
        assert math.hypot(*row) <= norm * (1 + 1e-15 * len(row))


@settings(max_examples=40)
@given(draw.matrices(dtypes=(np.float64,)), norms)
def test_clipping_twice_is_clipping_once(vectors: np.ndarray, norm: float) -> None:
    once = clip_to_ball(vectors, norm=norm)
    assert clip_to_ball(once, norm=norm) == pytest.approx(once, rel=1e-14)


@pytest.mark.parametrize("norm", [1e-300, 1.0, 10.0, 1e300, math.inf])
def test_tiny_and_zero_rows_are_fine_whatever_the_ball(norm: float) -> None:
    rows = np.array([[0.0, 0.0], [5e-324, 0.0], [1e-310, 1e-310]])
    clipped = clip_to_ball(rows, norm=norm)
    assert np.isfinite(clipped).all()
    assert np.array_equal(clipped, rows)


def test_an_infinite_ball_clips_nothing() -> None:
    rows = np.array([[1e150, -3.0], [0.0, 2.0]])
    assert np.array_equal(clip_to_ball(rows, norm=math.inf), rows)


def test_what_was_given_is_not_changed() -> None:
    rows = np.full((2, 2), 9.0)
    clip_to_ball(rows, norm=1.0)
    assert (rows == 9).all()


@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan])
def test_a_ball_of_no_size_is_refused(norm: float) -> None:
    with pytest.raises(ValueError, match=f"norm={norm} must be above 0"):
        clip_to_ball(np.ones((1, 1)), norm=norm)


@settings(max_examples=40)
@given(draw.matrices())
def test_unit_rows_have_length_one_or_zero(vectors: np.ndarray) -> None:
    for row, given_row in zip(unit(vectors), vectors, strict=True):
        length = math.hypot(*given_row)
        if length > 1e-149:
            assert row * length == pytest.approx(given_row, rel=1e-12, abs=1e-300)
        if length < 1e-151:
            assert not row.any()
