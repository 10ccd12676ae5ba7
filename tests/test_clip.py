"""Clipping bounds every record and changes no direction."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privkit.clip import clip_ellipsoid, clip_groups, clip_to_ball, unit
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


@pytest.mark.parametrize("length", [1e100, 1e154, 1e200, 1.7e308])
@pytest.mark.parametrize("norm", [1e-10, 1.0, 1e90])
def test_rows_whose_squares_overflow_land_on_the_set_in_their_own_direction(length, norm) -> None:
    groups, rows = (
        np.array([0, 0, 1]),
        length * np.array([[0.6, 0.0, 0.8], [0.0, -1.0, 0.0], [0.1, 0.3, -0.2]]),
    )
    ball = np.array([math.hypot(*row) for row in rows / length])[:, None]
    assert clip_to_ball(rows, norm=norm) == pytest.approx(rows / length * (norm / ball), rel=1e-12)
    assert unit(rows) == pytest.approx(rows / length / ball, rel=1e-12)
    apart = clip_groups(rows, groups, norms=(norm, 3 * norm))
    assert np.hypot(apart[:, 0], apart[:, 1]) == pytest.approx(norm, rel=1e-12)
    assert np.abs(apart[:, 2]) == pytest.approx([3 * norm, 0, 3 * norm], rel=1e-12)
    whole = clip_ellipsoid(rows, groups, norms=(norm, 3 * norm))
    # from far away, the nearest point is where the normal, z_g / a_g^2, has the row's direction
    normal = whole / norm**2 / np.array([1, 1, 9])
    assert unit(normal) == pytest.approx(unit(rows), rel=1e-9, abs=1e-9)
    assert [measured(row, groups, (norm, 3 * norm)) for row in whole] == pytest.approx([1, 1, 1], rel=1e-12)


def test_a_group_without_coordinates_is_no_trouble() -> None:
    rows = np.array([[3.0, 4.0]])
    for clip in (clip_groups, clip_ellipsoid):
        assert clip(rows, np.array([0, 0]), norms=(1.0, 1.0)) == pytest.approx(np.array([[0.6, 0.8]]))


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


# ---------------------------------------------------------------------- one ellipsoid

axes = st.tuples(st.floats(0.1, 10), st.floats(0.1, 10))


def measured(row: np.ndarray, groups: np.ndarray, semi_axes: tuple[float, ...]) -> float:
    """Return the length of one row in units of the semi-axes, coordinate by coordinate."""
    return math.sqrt(math.fsum((float(z) / semi_axes[g]) ** 2 for z, g in zip(row, groups, strict=True)))


@settings(max_examples=60)
@given(draw.matrices(dtypes=(np.float64,)), axes, st.integers(0, 31))
def test_inside_the_ellipsoid_rows_stay_and_outside_they_land_on_it(vectors, semi_axes, bits):
    groups = np.array([bits >> j & 1 for j in range(vectors.shape[1])])
    clipped = clip_ellipsoid(vectors, groups, norms=semi_axes)
    for row, given_row in zip(clipped, vectors, strict=True):
        length = measured(given_row, groups, semi_axes)
        if length <= 1:
            assert row == pytest.approx(given_row, rel=1e-14)
        else:
            assert measured(row, groups, semi_axes) == pytest.approx(1.0, rel=1e-12)
            # nearest: what was taken away is along the outward normal, z_g / a_g^2
            normal = row / np.array(semi_axes)[groups] ** 2
            away = given_row - row
            assert away @ normal == pytest.approx(
                np.linalg.norm(away) * np.linalg.norm(normal), rel=1e-6, abs=1e-9
            )


@settings(max_examples=60)
@given(draw.matrices(dtypes=(np.float64,)), st.floats(0.05, 0.95), st.floats(0.1, 10), st.integers(0, 31))
def test_balls_whose_shares_add_up_to_one_lie_inside_the_ellipsoid(vectors, weight, radius, bits):
    groups = np.array([bits >> j & 1 for j in range(vectors.shape[1])])
    balls = (radius * 0.6, radius * 0.8)
    semi_axes = (balls[0] / weight**0.5, balls[1] / (1 - weight) ** 0.5)
    inside = clip_groups(vectors, groups, norms=balls)
    assert clip_ellipsoid(inside, groups, norms=semi_axes) == pytest.approx(inside, rel=1e-12)
    lost = [
        np.linalg.norm(vectors - c, axis=1)
        for c in (clip_ellipsoid(vectors, groups, norms=semi_axes), inside)
    ]
    assert (lost[0] <= lost[1] * (1 + 1e-9) + 1e-9).all()


@settings(max_examples=40)
@given(draw.matrices(), norms)
def test_an_ellipsoid_of_equal_axes_is_a_ball(vectors: np.ndarray, norm: float) -> None:
    groups = np.arange(vectors.shape[1]) % 2
    clipped = clip_ellipsoid(vectors, groups, norms=(norm, norm))
    assert clipped == pytest.approx(clip_to_ball(vectors, norm=norm), rel=1e-12, abs=1e-300)


def test_an_ellipsoid_of_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"norms=\(1.0, 0.0\) must all be above 0"):
        clip_ellipsoid(np.ones((1, 2)), np.array([0, 1]), norms=(1.0, 0.0))
