"""How alike pictures are: against sums written out, and what must not change a measure."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.statistics.pixels import mean_squares, nearest_rank, psnr, rank_by_chance, ssim

RNG = np.random.default_rng(0)
ONE, OTHER = RNG.random((2, 13, 15)), RNG.random((2, 13, 15))


def window() -> np.ndarray:
    line = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 1.5**2))
    both = np.outer(line, line)
    return both / both.sum()


def ssim_by_hand(a: np.ndarray, b: np.ndarray) -> float:
    """Equation 13 of Wang et al. (2004), pixel by pixel."""
    weights, found = window(), []
    for one, other in zip(a, b, strict=True):
        x, y = np.pad(one, 5, mode="reflect"), np.pad(other, 5, mode="reflect")
        for i in range(one.shape[0]):
            for j in range(one.shape[1]):
                p, q = x[i : i + 11, j : j + 11], y[i : i + 11, j : j + 11]
                mp, mq = (weights * p).sum(), (weights * q).sum()
                vp, vq = (weights * (p - mp) ** 2).sum(), (weights * (q - mq) ** 2).sum()
                cov = (weights * (p - mp) * (q - mq)).sum()
                light = (2 * mp * mq + 0.01**2) / (mp**2 + mq**2 + 0.01**2)
                found.append(light * (2 * cov + 0.03**2) / (vp + vq + 0.03**2))
    return float(np.mean(found))


def test_ssim_is_the_published_formula_pixel_by_pixel():
    assert ssim(ONE, OTHER) == pytest.approx(ssim_by_hand(ONE, OTHER), abs=1e-9)
    near = np.clip(ONE + 0.05 * OTHER, 0, 1)
    assert ssim(ONE, near) == pytest.approx(ssim_by_hand(ONE, near), abs=1e-9)


def test_ssim_is_one_for_the_same_picture_and_does_not_ask_which_is_which():
    assert ssim(ONE, ONE) == pytest.approx(1.0)
    assert ssim(ONE, OTHER) == pytest.approx(ssim(OTHER, ONE))
    assert ssim(ONE, 1 - ONE) < 0


@given(st.floats(1e-6, 1.0))
def test_psnr_falls_by_ten_decibels_where_the_error_is_ten_times_as_large(square):
    assert psnr(square / 10) - psnr(square) == pytest.approx(10.0)
    assert psnr(square) >= 0


def test_mean_squares_are_over_all_pixels_of_each_picture():
    others = np.stack([OTHER, ONE])
    assert mean_squares(ONE, others) == pytest.approx([((ONE - OTHER) ** 2).mean(), 0.0])


def test_the_rank_counts_the_non_members_that_are_nearer_than_every_member():
    grey = [np.full((1, 4, 4), level) for level in (0.0, 0.1, 0.2, 0.3, 0.9)]
    assert nearest_rank(grey[0], np.stack([grey[1], grey[4]]), np.stack([grey[2], grey[3]])) == 1
    assert nearest_rank(grey[0], np.stack([grey[3], grey[4]]), np.stack([grey[1], grey[2]])) == 3
    assert nearest_rank(grey[0], np.stack([grey[2]]), np.stack([grey[2]])) == 1  # a tie is the member's


@pytest.mark.parametrize(("members", "others"), [(1, 1), (3, 3), (5, 2), (2, 7), (4, 0)])
def test_without_memory_the_mean_rank_is_the_stated_one(members, others):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(4000):
        levels = rng.random((members + others, 1, 1, 1))
        found.append(nearest_rank(np.zeros((1, 1, 1)), levels[:members], levels[members:]))
    error = 4 * np.std(found) / np.sqrt(len(found)) + 1e-12
    assert np.mean(found) == pytest.approx(rank_by_chance(members, others), abs=error)
