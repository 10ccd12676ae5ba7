import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float
from scipy import integrate, stats

from accountant.selection import Fidelity, fidelity, pure_epsilon, scale

sizes = st.integers(2, 300).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d - 1)))
scales = st.floats(-2.0, 8.0).map(lambda power: 10.0**power)


def overlap(dim: int, k: int, scale_over_range: float) -> float:
    return fidelity(dim=dim, k=k, scale_over_range=scale_over_range).expected_overlap


def test_the_scale_is_the_papers() -> None:
    assert scale(k=52, score_bound=1.0, epsilon_total=0.1, rounds=50) == pytest.approx(52_000, rel=1e-15)
    of_code = {"score_bound": 0.1, "epsilon_total": 0.1, "rounds": 20}
    assert scale(k=103, **of_code) == pytest.approx(4_120)
    assert scale(k=154, **of_code) == pytest.approx(6_160)
    assert scale(k=103, **{**of_code, "epsilon_total": 1.0}) == pytest.approx(412)


@given(sizes, scales, st.floats(0.01, 100.0), st.integers(1, 100))
def test_scale_and_cost_undo_each_other(
    size: tuple[int, int], epsilon: float, score_bound: float, rounds: int
) -> None:
    dim, k = size
    noise = scale(k=k, score_bound=score_bound, epsilon_total=epsilon, rounds=rounds)
    cost = rounds * pure_epsilon(k=k, dim=dim, score_bound=score_bound, scale=noise)
    assert cost == pytest.approx(epsilon * min(k, dim - k) / k, rel=1e-12)


def test_a_large_set_costs_as_little_as_the_small_rest() -> None:
    # topk_laplace_bound_k_gt_d2 of the reference values
    found = pure_epsilon(k=461, dim=512, score_bound=1.0, scale=461_000.0)
    assert found == pytest.approx(0.000221258134490239, rel=1e-6)


def probability_of_the_set(dim: int, k: int, high: float) -> tuple[float, float]:
    """ln P(the k largest are the first k) with those at ``high`` and at -``high``, the rest at 0; lambda = 1."""

    def log_probability(shift: float) -> float:
        def density(y: float) -> float:  # of the smallest of the k at y, all others below it
            smallest = k * stats.laplace.pdf(y - shift) * stats.laplace.sf(y - shift) ** (k - 1)
            return float(smallest * stats.laplace.cdf(y) ** (dim - k)) * 1e60

        return math.log(integrate.quad(density, -5.0, 20.0, epsabs=0, epsrel=1e-12, limit=500)[0])

    return log_probability(high), log_probability(-high)


def test_the_cost_of_a_set_cannot_be_improved() -> None:
    # topk_laplace_pure_tight_d512_k52: every score moves by H, from 52 at H to 52 at 0 and back
    dim, k, noise = 512, 52, 52_000.0
    up, down = probability_of_the_set(dim, k, 1 / noise)
    assert (up - down) / pure_epsilon(k=k, dim=dim, score_bound=1.0, scale=noise) == pytest.approx(
        1.0, abs=1e-6
    )


@given(st.floats(-9.0, 2.5).map(lambda power: 10.0**power))
def test_one_of_two_has_a_closed_form(shift: float) -> None:
    # x + t > z for standard Laplace x, z with probability 1 - e^-t (2 + t) / 4
    found = fidelity(dim=2, k=1, scale_over_range=1 / shift)
    assert found.expected_overlap == pytest.approx(1 - math.exp(-shift) * (2 + shift) / 4, abs=1e-15)
    want = shift / 4 if shift < 1e-8 else (-2 * math.expm1(-shift) - shift * math.exp(-shift)) / 4
    assert found.advantage == pytest.approx(want, rel=1e-7)


@pytest.mark.parametrize(
    ("rounds", "epsilon", "rho", "want"),
    [(50, 1.0, 0.1, 0.10156), (1, 8.0, 0.1, 0.1023), (20, 10.0, 0.1, 0.10161), (20, 10.0, 0.5, 0.5)],
)
def test_fidelity_agrees_with_the_published_values(
    rounds: int, epsilon: float, rho: float, want: float
) -> None:
    k = math.ceil(rho * 512)
    noise = scale(k=k, score_bound=1.0, epsilon_total=0.1 * epsilon, rounds=rounds)
    assert overlap(512, k, noise) == pytest.approx(want, abs=5e-5 if want > 0.102 else 6e-6)


@pytest.mark.parametrize(("k", "noise"), [(52, 0.249), (128, 0.341), (256, 0.546)])
def test_four_in_five_need_noise_below_the_range_of_the_scores(k: int, noise: float) -> None:
    assert overlap(512, k, noise) == pytest.approx(0.8, abs=1e-3)


def simulated(scores_d: Float[np.ndarray, " d"], k: int, noise: float, seed: int) -> tuple[float, float]:
    """Mean overlap with the first k, and its standard error."""
    rng = np.random.default_rng(seed)
    noisy_Nd = scores_d + rng.laplace(scale=noise, size=(20_000, scores_d.size))
    found_N = (np.argpartition(-noisy_Nd, k - 1, axis=1)[:, :k] < k).mean(axis=1)
    return float(found_N.mean()), float(found_N.std() / math.sqrt(found_N.size))


@pytest.mark.parametrize(
    ("dim", "k", "noise"),
    [(2, 1, 1.0), (12, 1, 0.5), (12, 11, 0.5), (30, 7, 0.8), (64, 32, 0.3), (100, 10, 3.0)],
)
def test_fidelity_agrees_with_simulation(dim: int, k: int, noise: float) -> None:
    scores = np.where(np.arange(dim) < k, 1.0, 0.0)
    mean, error = simulated(scores, k, noise, seed=dim)
    assert abs(overlap(dim, k, noise) - mean) < 4 * error


@pytest.mark.parametrize("seed", range(5))
def test_no_other_scores_do_better(seed: int) -> None:
    scores = np.sort(np.random.default_rng(seed).random(20))[::-1].copy()
    mean, error = simulated(scores, 5, 0.5, seed)
    assert mean < overlap(20, 5, 0.5) + 4 * error


@settings(deadline=None)
@given(sizes, scales)
def test_fidelity_lies_between_chance_and_certainty(size: tuple[int, int], noise: float) -> None:
    dim, k = size
    found = fidelity(dim=dim, k=k, scale_over_range=noise)
    assert found.chance == k / dim
    assert found.chance <= found.expected_overlap <= 1
    assert 0 < found.advantage <= 1 - found.chance
    assert 0 < found.share <= 1 + 1e-15


@settings(deadline=None)
@given(sizes, scales, st.floats(1.001, 100.0))
def test_more_noise_finds_less(size: tuple[int, int], noise: float, factor: float) -> None:
    dim, k = size
    little = fidelity(dim=dim, k=k, scale_over_range=noise)
    much = fidelity(dim=dim, k=k, scale_over_range=noise * factor)
    assert much.advantage <= little.advantage * (1 + 1e-9)


@settings(deadline=None)
@given(sizes, scales)
def test_what_is_found_and_what_is_left_are_one_picture(size: tuple[int, int], noise: float) -> None:
    # A member of the rest is left out as much more often than chance as a member of the top is taken.
    dim, k = size
    top, rest = (fidelity(dim=dim, k=n, scale_over_range=noise) for n in (k, dim - k))
    assert top.share == pytest.approx(rest.share, rel=1e-12)


@settings(deadline=None)
@given(sizes)
def test_small_shifts_count_in_proportion(size: tuple[int, int]) -> None:
    dim, k = size
    little, less = (fidelity(dim=dim, k=k, scale_over_range=noise).advantage for noise in (1e6, 1e9))
    assert little / less == pytest.approx(1000, rel=1e-4)


def naive_overlap(dim: int, k: int, noise: float) -> float:
    """P(a score at H is in) as one integral over its own noisy value, no parts taken."""

    def density(y: float) -> float:
        high, low = stats.laplace.sf(y - 1 / noise), stats.laplace.sf(y)
        n = np.arange(k)
        fewer = stats.binom.pmf(n, k - 1, high) @ stats.binom.cdf(k - 1 - n, dim - k, low)
        return float(stats.laplace.pdf(y - 1 / noise) * fewer)

    ends = (-30.0, 0.0, 1 / noise, 1 / noise + 30)
    return sum(integrate.quad(density, a, b, limit=500, epsabs=1e-10)[0] for a, b in itertools.pairwise(ends))


@pytest.mark.parametrize(("dim", "k", "noise"), [(40, 3, 0.2), (40, 20, 5.0), (200, 60, 0.4)])
def test_fidelity_agrees_with_the_integral_before_parts(dim: int, k: int, noise: float) -> None:
    assert overlap(dim, k, noise) == pytest.approx(naive_overlap(dim, k, noise), abs=1e-8)


@pytest.mark.parametrize(("dim", "k"), [(512, 52), (4096, 410), (4096, 2048)])
def test_no_noise_finds_everything(dim: int, k: int) -> None:
    assert overlap(dim, k, 1e-12) == 1.0
    assert overlap(dim, k, 0.02) == pytest.approx(1.0, abs=1e-9)


def test_a_fidelity_takes_milliseconds() -> None:
    fidelity(dim=512, k=52, scale_over_range=1.0)
    start = time.perf_counter()
    for noise in (1e-3, 0.3, 52_000.0):
        fidelity(dim=512, k=52, scale_over_range=noise)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (52_000.0, "at most 0.1016, by chance 0.1016: the private selection is a coin toss"),
        (0.249, "at most 0.7999, by chance 0.1016: at best 78 % of the way to the true set"),
    ],
)
def test_a_coin_toss_is_called_one(noise: float, words: str) -> None:
    assert fidelity(dim=512, k=52, scale_over_range=noise).note == words


def test_certainty_is_no_coin_toss() -> None:
    found = Fidelity(expected_overlap=1.0, chance=0.999, advantage=0.001)
    assert found.note == "at most 1.0000, by chance 0.9990: at best 100 % of the way to the true set"


@pytest.mark.parametrize(
    ("dim", "k", "noise", "sentence"),
    [
        (4, 4, 1.0, "k=4 of dim=4 leaves nothing unselected; give a k below dim"),
        (4, 0, 1.0, "k=0 must be a whole number of at least 1"),
        (4, 1, 0.0, r"scale_over_range=0\.0 must be finite and above 0"),
        (4, 1, math.nan, "scale_over_range is NaN"),
        (4, 1, math.inf, "scale_over_range=inf must be finite"),
    ],
)
def test_bad_numbers_are_refused(dim: int, k: int, noise: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        fidelity(dim=dim, k=k, scale_over_range=noise)
    if k in (0, 4):
        with pytest.raises(ValueError, match=sentence):
            pure_epsilon(k=k, dim=dim, score_bound=1.0, scale=1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -1.0])
def test_a_scale_of_nonsense_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="score_bound"):
        scale(k=1, score_bound=bad, epsilon_total=1.0)
    with pytest.raises(ValueError, match="epsilon_total"):
        scale(k=1, score_bound=1.0, epsilon_total=bad)
    with pytest.raises(ValueError, match="scale"):
        pure_epsilon(k=1, dim=2, score_bound=1.0, scale=bad)
