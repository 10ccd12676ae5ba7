"""Gaussians for Gaussians: the closed form against the definition, iterations and samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmarks.orthogonal_peers.fixed_point import barycenter_by_iteration, diagonal_by_iteration
from privkit.barycenter import BARYCENTERS, independent, mixture, wasserstein


@st.composite
def some(draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw Gaussians with weights; one alone, equal ones and weights of 0 among them."""
    shape = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    mean = draw(arrays(np.float64, shape, elements=st.floats(-9, 9)))
    spread = draw(arrays(np.float64, shape, elements=st.floats(1e-2, 9)))
    raw = draw(arrays(np.float64, shape[0], elements=st.sampled_from([0.0, 0.3, 1.0, 2.5])))
    raw[0] += 1.0
    return mean, spread, raw / raw.sum()


def distances(mean_d, spread_d, mean_Md, spread_Md, weight_M) -> float:
    """Return the weighted sum of squared 2-Wasserstein distances, by traces of roots of matrices."""
    total = 0.0
    for mean, spread, weight in zip(mean_Md, spread_Md, weight_M, strict=True):
        cross = np.sqrt(np.sqrt(spread_d**2) ** 2 * spread**2)
        total += weight * (((mean_d - mean) ** 2).sum() + (spread_d**2 + spread**2 - 2 * cross).sum())
    return float(total)


@given(some(), st.integers(0, 99))
def test_nothing_near_the_barycenter_is_nearer(given_, seed):
    found, rng = wasserstein(*given_), np.random.default_rng(seed)
    least = distances(*found, *given_)
    for size in (1e-3, 0.1, 1.0):
        other_mean = found.mean + size * rng.standard_normal(found.mean.shape)
        other_spread = np.abs(found.spread + size * rng.standard_normal(found.spread.shape))
        assert distances(other_mean, other_spread, *given_) >= least - 1e-9


@given(some())
def test_the_fixed_point_of_the_papers_iteration_is_the_closed_form(given_):
    _, spread, weight = given_
    covariances = np.array([np.diag(s**2) for s in spread])
    full = barycenter_by_iteration(covariances, weight)
    np.testing.assert_allclose(full, np.diag(wasserstein(*given_).spread ** 2), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        diagonal_by_iteration(spread**2, weight), wasserstein(*given_).spread ** 2, rtol=1e-8
    )


@given(some())
def test_spreads_are_in_order_and_means_are_alike(given_):
    one, two, three = (f(*given_) for f in (independent, wasserstein, mixture))
    assert (one.spread <= two.spread * (1 + 1e-12)).all()
    assert (two.spread <= three.spread * (1 + 1e-12)).all()
    for other in (two, three):
        np.testing.assert_allclose(other.mean, one.mean, rtol=1e-12)


@given(some())
def test_one_gaussian_and_equal_ones_stay_as_they_are(given_):
    mean, spread, weight = given_
    same = np.tile(mean[:1], (len(mean), 1)), np.tile(spread[:1], (len(mean), 1)), weight
    for found in (f(*same) for f in (wasserstein, mixture)):
        np.testing.assert_allclose(found.mean, mean[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.spread, spread[0], rtol=1e-9, atol=1e-9)
    alone = mean[:1], spread[:1], np.ones(1)
    for name, f in BARYCENTERS.items():
        np.testing.assert_allclose(f(*alone).spread, spread[0], rtol=1e-9, err_msg=name)


def test_mixture_and_naive_average_are_those_of_samples():
    mean, spread = np.array([[0.0, 3.0], [2.0, -1.0]]), np.array([[1.0, 0.5], [2.0, 0.1]])
    weight, rng = np.array([0.3, 0.7]), np.random.default_rng(0)
    each = mean + spread * rng.standard_normal((400_000, 2, 2))
    chosen = each[np.arange(len(each)), (rng.random(len(each)) < 0.7).astype(int)]
    np.testing.assert_allclose(mixture(mean, spread, weight).spread, chosen.std(0), rtol=5e-3)
    np.testing.assert_allclose(independent(mean, spread, weight).spread, (weight @ each).std(0), rtol=5e-3)


def test_a_spread_of_nothing_is_allowed():
    nothing = np.zeros((2, 3))
    assert wasserstein(nothing, nothing, np.array([0.5, 0.5])).spread.tolist() == [0.0] * 3


def test_the_iteration_halves_its_error_in_every_step():
    variances, weight = np.array([[1.0], [25.0]]), np.array([0.5, 0.5])
    errors = [abs(np.log(diagonal_by_iteration(variances, weight, steps=k)[0] / 9.0)) for k in (5, 6, 7, 8)]
    assert np.divide(errors[1:], errors[:-1]) == pytest.approx([0.5] * 3, abs=1e-2)
