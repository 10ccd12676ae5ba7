import math

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from accountant import gaussian, joint
from accountant.accountants import gaussian_mu, smallest
from accountant.beside import mu_beside, sigma_beside
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    Composed,
    Event,
    ExponentialTopK,
    Gaussian,
    GaussianTopK,
    GumbelTopK,
    LaplaceTopK,
    Leaf,
    NonPrivate,
    PureDP,
    Repeated,
)

DELTA = 1e-5
SIZE = {"k": 52, "dim": 512, "score_bound": 1.0}
GUMBEL_STD = math.pi / math.sqrt(6)


def release(selection: Leaf, sigma: float, *, rounds: int, selections: int) -> Event:
    return Composed(
        events=(
            Repeated(event=selection, count=selections),
            Repeated(event=Gaussian(noise_multiplier=sigma), count=rounds),
        )
    )


# selection noise per score at which the analysis keeps the Gaussian sigma of the paper's split
@pytest.mark.parametrize(
    ("rounds", "epsilon", "sigma", "selection"),
    [
        (50, 1.0, 29.038, PureDP(epsilon=104 * math.sqrt(2) / 9247)),
        (50, 1.0, 29.038, LaplaceTopK(**SIZE, scale=2531 / math.sqrt(2))),
        (50, 1.0, 29.038, GumbelTopK(**SIZE, scale=732 / GUMBEL_STD)),
        (50, 1.0, 29.038, GaussianTopK(**SIZE, scale=1428.0)),
        (1, 1.0, 4.107, PureDP(epsilon=104 * math.sqrt(2) / 1065)),
        (1, 1.0, 4.107, GumbelTopK(**SIZE, scale=103 / GUMBEL_STD)),
        (1, 1.0, 4.107, GaussianTopK(**SIZE, scale=202.0)),
        (1, 8.0, 0.6552, PureDP(epsilon=104 * math.sqrt(2) / 160)),
        (50, 8.0, 4.633, LaplaceTopK(**SIZE, scale=424 / math.sqrt(2))),
    ],
)
def test_published_selection_noise_fits_beside_the_published_sigma(
    rounds: int, epsilon: float, sigma: float, selection: Leaf
) -> None:
    found = sigma_beside(selection, epsilon=epsilon, delta=DELTA, rounds=rounds)
    assert found == pytest.approx(sigma, rel=2e-3)


def test_the_paper_s_selection_costs_next_to_nothing() -> None:
    laplace = LaplaceTopK(**SIZE, scale=52_000.0)
    alone = gaussian.sigma_from_epsilon(epsilon=1.0, delta=DELTA, rounds=50)
    by_joint = joint.sigma_from_epsilon(epsilon=1.0, delta=DELTA, rounds=50, selection_share=0.1)
    found = sigma_beside(laplace, epsilon=1.0, delta=DELTA, rounds=50)
    assert alone < found < by_joint  # as a whole noisy vector it costs less than as randomised response
    assert found == pytest.approx(26.3823, abs=5e-5)


def test_a_pure_selection_is_accounted_jointly() -> None:
    found = sigma_beside(PureDP(epsilon=0.002), epsilon=1.0, delta=DELTA, rounds=50)
    assert found == joint.sigma_from_epsilon(epsilon=1.0, delta=DELTA, rounds=50, selection_share=0.1)


def test_no_selection_is_gaussian_noise_alone() -> None:
    found = sigma_beside(None, epsilon=1.0, delta=DELTA, rounds=50)
    assert found == gaussian.sigma_from_epsilon(epsilon=1.0, delta=DELTA, rounds=50)


@pytest.mark.parametrize("selections", [1, 7, 20])
def test_a_gumbel_selection_takes_its_share_of_mu_squared(selections: int) -> None:
    found = sigma_beside(
        GumbelTopK(**SIZE, scale=400.0), epsilon=2.0, delta=DELTA, rounds=20, selections=selections
    )
    with mp.workdps(40):
        pick = 2 * mp.sqrt(2) * mp.erfinv(mp.tanh(mp.mpf(2) / 400 / 4))  # 2 quantile(1 / (1 + e^(-eta / 2)))
        allowed = mp.findroot(
            lambda mu: mp.ncdf(-2 / mu + mu / 2) - mp.exp(2) * mp.ncdf(-2 / mu - mu / 2) - mp.mpf(10) ** -5,
            0.5,
        )
        exact = mp.sqrt(20 / (allowed**2 - selections * 52 * pick**2))
    assert float(exact) * (1 - 1e-10) <= found <= float(exact) * (1 + 1e-10)


def test_renyi_divergence_leaves_noise_where_a_gaussian_equivalent_leaves_none() -> None:
    picks = GumbelTopK(**SIZE, scale=40.0)  # 52 picks of range 0.05 cost 0.8291 as a Gaussian
    assert gaussian.epsilon_from_mu(mu=gaussian_mu(picks), delta=DELTA) == pytest.approx(0.8291, abs=6e-5)
    found = sigma_beside(picks, epsilon=0.75, delta=DELTA, rounds=1)
    u = 0.05 / -math.expm1(-0.05)
    rho = 52 * (u - 1 - math.log(u)) + 1 / (2 * found**2)

    def bound(log: float) -> float:
        order = 1 + math.exp(log)
        return rho * order + math.log1p(-1 / order) - (math.log(DELTA) + math.log(order)) / (order - 1)

    best = minimize_scalar(bound, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-9}).fun
    assert best == pytest.approx(0.75, rel=1e-5)


kinds = st.one_of(
    st.builds(
        lambda kind, k, scale: kind(k=k, dim=40, score_bound=1.0, scale=scale),
        st.sampled_from((LaplaceTopK, ExponentialTopK, GumbelTopK, GaussianTopK)),
        st.integers(1, 39),
        st.floats(0.0, 6.0).map(lambda power: 10.0**power),
    ),
    st.builds(PureDP, epsilon=st.floats(1e-4, 3.0)),
    st.builds(BoundedRange, eta=st.floats(1e-4, 3.0)),
    st.builds(ApproximateDP, epsilon=st.floats(1e-4, 1.0), delta=st.floats(1e-12, 1e-3)),
)


@settings(max_examples=60, deadline=None)
@given(
    selection=kinds,
    epsilon=st.floats(-3.0, 4.0).map(lambda power: 10.0**power),
    delta=st.floats(-30.0, -1.0).map(lambda power: 10.0**power),
    rounds=st.integers(1, 300),
    once=st.booleans(),
)
def test_noise_keeps_the_budget_and_less_does_not(
    selection: Leaf, epsilon: float, delta: float, rounds: int, once: bool
) -> None:
    budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "selections": 1 if once else None}
    selections = 1 if once else rounds
    alone = smallest(Repeated(event=selection, count=selections), delta=delta).epsilon
    assume(abs(alone / epsilon - 1) > 1e-9)
    if alone > epsilon:
        with pytest.raises(ValueError, match="the selection alone spends them"):
            sigma_beside(selection, **budget)
        return
    sigma = sigma_beside(selection, **budget)
    assert sigma >= gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds) * (1 - 1e-12)
    whole = release(selection, sigma, rounds=rounds, selections=selections)
    assert smallest(whole, delta=delta).epsilon <= epsilon
    less = release(selection, sigma * 0.99, rounds=rounds, selections=selections)
    assert smallest(less, delta=delta).epsilon > epsilon * (1 - 1e-9)


@settings(max_examples=30, deadline=None)
@given(kinds, st.floats(0.5, 20.0), st.integers(2, 60))
def test_selecting_once_never_needs_more_noise(selection: Leaf, epsilon: float, rounds: int) -> None:
    budget = {"epsilon": epsilon, "delta": DELTA, "rounds": rounds}
    try:
        often = sigma_beside(selection, **budget)
    except ValueError:
        return
    assert sigma_beside(selection, **budget, selections=1) <= often


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0 must be finite and above 0."),
        ({"delta": 1.0}, "delta=1.0 must lie strictly between 0 and 1."),
        ({"rounds": 0}, "rounds=0 must be a whole number of at least 1."),
        ({"selections": 0}, "count=0 must be a whole number of at least 1."),
    ],
)
def test_bad_input_is_refused(bad: dict[str, float], sentence: str) -> None:
    budget = {"epsilon": 1.0, "delta": DELTA, "rounds": 5} | bad
    with pytest.raises(ValueError, match=r".") as refused:
        sigma_beside(PureDP(epsilon=0.01), **budget)  # pyright: ignore[reportArgumentType]
    assert str(refused.value) == sentence


def test_a_selection_without_noise_is_refused() -> None:
    with pytest.raises(ValueError, match="no Gaussian noise makes up for a part released without noise"):
        sigma_beside(NonPrivate(), epsilon=1.0, delta=DELTA, rounds=5)


def test_a_selection_that_spends_it_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"epsilon=1\.0, delta=1e-05 leave nothing for the Gaussian noise"):
        sigma_beside(PureDP(epsilon=1.1), epsilon=1.0, delta=DELTA, rounds=1)
    with pytest.raises(ValueError, match="the selection alone spends them"):
        mu_beside(ApproximateDP(epsilon=0.1, delta=1e-4), epsilon=1.0, delta=DELTA)
