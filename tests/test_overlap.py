import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant.score_noise import (
    AbstractScoreNoise,
    ExponentialNoise,
    GaussianNoise,
    GumbelNoise,
    LaplaceNoise,
)
from accountant.selection import fidelity

NOISES = (LaplaceNoise(), ExponentialNoise(), GumbelNoise(), GaussianNoise())


def survival(noise: AbstractScoreNoise, y: Any) -> Any:
    return {
        LaplaceNoise: lambda: mp.exp(-y) / 2 if y >= 0 else 1 - mp.exp(y) / 2,
        ExponentialNoise: lambda: mp.exp(-max(y, 0)),
        GumbelNoise: lambda: 1 - mp.exp(-mp.exp(-y)),
        GaussianNoise: lambda: mp.ncdf(-y),
    }[type(noise)]()


def at(function: Callable[..., Any], y: float, *more: float) -> float:
    return float(function(np.array([y]), *more)[0])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(NOISES),
    st.floats(0.0, 1.0),
    st.floats(-12.0, 1.8).map(lambda power: 10.0**power),
)
def test_tails_and_drops_keep_their_digits(noise: AbstractScoreNoise, place: float, shift: float) -> None:
    y = noise.low + place * (noise.high + shift - noise.low)
    with mp.workdps(400):  # 1 - S(y) of the smallest float still has digits then
        exact = survival(noise, mp.mpf(y))
        if exact > 0 and exact < 1:
            assert at(noise.log_survival, y) == pytest.approx(float(mp.log(exact)), rel=1e-12, abs=1e-15)
            assert at(noise.log_cdf, y) == pytest.approx(float(mp.log(1 - exact)), rel=1e-12, abs=1e-15)
        if noise.low <= y - shift:
            drop = survival(noise, mp.mpf(y) - mp.mpf(shift)) - exact
            assert at(noise.survival_drop, y, shift) == pytest.approx(float(drop), rel=1e-9, abs=1e-30)


@pytest.mark.parametrize("noise", NOISES)
def test_densities_are_slopes_and_standard_deviations_are_theirs(noise: AbstractScoreNoise) -> None:
    for y in (0.3, 1.7, 5.0):
        slope = at(noise.survival_drop, y + 5e-5, 1e-4) / 1e-4
        assert at(noise.density, y) == pytest.approx(slope, rel=1e-7)
    y = np.linspace(noise.low, noise.high, 400_001)
    mass = noise.density(y) * (y[1] - y[0])
    mean = (mass * y).sum()
    assert math.sqrt((mass * (y - mean) ** 2).sum()) == pytest.approx(noise.std, rel=1e-3)


@pytest.mark.parametrize("shift", [1e-9, 1e-3, 0.5, 3.0, 20.0])
def test_one_of_two_has_a_closed_form(shift: float) -> None:
    closed = {
        ExponentialNoise: -math.expm1(-shift) / 2,
        GumbelNoise: math.tanh(shift / 2) / 2,
        GaussianNoise: math.erf(shift / 2) / 2,
    }
    for noise in NOISES[1:]:
        found = fidelity(dim=2, k=1, scale_over_range=1 / shift, noise=noise)
        assert found.advantage == pytest.approx(closed[type(noise)], rel=1e-9)


def picked_one_by_one(dim: int, k: int, shift: float) -> float:
    """Expected share of the top k among k picks, each with chances in proportion to e^score."""
    heavy = math.exp(shift)
    chance_n = np.array([1.0])  # of n of the top among the picks so far
    for pick in range(k):
        n = np.arange(len(chance_n))
        top, rest = (k - n) * heavy, np.maximum(dim - k - (pick - n), 0)
        into = chance_n * top / (top + rest)
        chance_n = np.append(chance_n - into, 0.0) + np.append(0.0, into)
    return float((chance_n * np.arange(len(chance_n))).sum() / k)


@pytest.mark.parametrize(("dim", "k"), [(2, 1), (20, 3), (40, 39), (64, 32), (512, 52), (512, 461)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 732 / (math.pi / math.sqrt(6))])
def test_gumbel_noise_selects_as_picks_by_the_exponential_mechanism(dim: int, k: int, scale: float) -> None:
    found = fidelity(dim=dim, k=k, scale_over_range=scale, noise=GumbelNoise())
    want = picked_one_by_one(dim, k, 1 / scale)
    assert found.expected_overlap == pytest.approx(want, rel=1e-10)
    assert found.advantage == pytest.approx(want - k / dim, rel=1e-7)


@pytest.mark.parametrize(("dim", "k", "scale"), [(12, 1, 0.5), (12, 11, 0.5), (30, 7, 0.8), (64, 32, 0.3)])
@pytest.mark.parametrize("noise", [ExponentialNoise(), GaussianNoise()])
def test_overlap_agrees_with_simulation(dim: int, k: int, scale: float, noise: AbstractScoreNoise) -> None:
    rng = np.random.default_rng(dim + k)
    shape = (40_000, dim)
    drawn = rng.exponential(size=shape) if isinstance(noise, ExponentialNoise) else rng.normal(size=shape)
    noisy = drawn * scale + (np.arange(dim) < k)
    share = (np.argpartition(-noisy, k - 1, axis=1)[:, :k] < k).mean(axis=1)
    found = fidelity(dim=dim, k=k, scale_over_range=scale, noise=noise).expected_overlap
    assert abs(found - share.mean()) < 4 * share.std() / math.sqrt(len(share))


# noise per score as published, overlaps by 512-coordinate simulation to 0.001
@pytest.mark.parametrize(
    ("scale", "noise", "want"),
    [
        (732 / (math.pi / math.sqrt(6)), GumbelNoise(), 0.1027),
        (1428.0, GaussianNoise(), 0.1008),
        (17.4 / (math.pi / math.sqrt(6)), GumbelNoise(), 0.1086),
        (33.9, GaussianNoise(), 0.1066),
        (130.0, LaplaceNoise(), 0.1023),
    ],
)
def test_overlap_agrees_with_the_published_values(
    scale: float, noise: AbstractScoreNoise, want: float
) -> None:
    found = fidelity(dim=512, k=52, scale_over_range=scale, noise=noise).expected_overlap
    assert found == pytest.approx(want, abs=1.1e-3)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(NOISES),
    st.integers(2, 120).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d - 1))),
    st.floats(-2.0, 8.0).map(lambda power: 10.0**power),
)
def test_overlap_lies_between_chance_and_certainty_and_falls_with_noise(
    noise: AbstractScoreNoise, size: tuple[int, int], scale: float
) -> None:
    dim, k = size
    found = fidelity(dim=dim, k=k, scale_over_range=scale, noise=noise)
    assert 0 < found.advantage <= 1 - found.chance
    more = fidelity(dim=dim, k=k, scale_over_range=2 * scale, noise=noise)
    assert more.advantage <= found.advantage * (1 + 1e-9)
