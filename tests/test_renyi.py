"""Renyi divergences against their definitions, and the conversion at its best order."""

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import bounded_range, rdp, zcdp
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    GaussianTopK,
    GroupGaussian,
    GumbelTopK,
    LaplaceTopK,
    NonPrivate,
    PureDP,
    Repeated,
)
from accountant.renyi import divergence, epsilon_from_event
from tests import draw

orders = st.floats(-6.0, 8.0).map(lambda power: 1 + 10.0**power)
epsilons = st.floats(-6.0, 5.0).map(lambda power: 10.0**power)


def at(event: Event, order: float) -> float:
    return float(divergence(event, np.array([order]))[0])


def two_outcomes(order: float, p: Any, q: Any) -> Any:
    """Renyi divergence of a coin of bias p from one of bias q."""
    order = mp.mpf(order)
    mass = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return mp.log(mass) / (order - 1)


@given(orders, epsilons)
def test_randomized_response_has_the_divergence_of_its_definition(order: float, epsilon: float) -> None:
    digits = 40 if order * epsilon < 1e4 else 30
    with mp.workdps(digits):
        odds = mp.exp(-mp.mpf(epsilon))
        truth, lie = 1 / (1 + odds), odds / (1 + odds)
        want = mp.log(
            mp.exp(mp.mpf(order) * mp.log(truth) + (1 - mp.mpf(order)) * mp.log(lie))
            + mp.exp(mp.mpf(order) * mp.log(lie) + (1 - mp.mpf(order)) * mp.log(truth))
        ) / (mp.mpf(order) - 1)
    assert at(PureDP(epsilon=epsilon), order) == pytest.approx(float(want), rel=1e-9)
    assert at(ApproximateDP(epsilon=epsilon, delta=0.1), order) == at(PureDP(epsilon=epsilon), order)


@given(st.floats(-4.0, -0.5).map(lambda power: 1 + 10.0**power), st.floats(-6.0, 0.0).map(lambda p: 10.0**p))
def test_small_divergences_keep_their_digits(order: float, epsilon: float) -> None:
    with mp.workdps(60):
        truth = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        want = two_outcomes(order, truth, 1 - truth)
    assert at(PureDP(epsilon=epsilon), order) == pytest.approx(float(want), rel=1e-12)


@given(orders, epsilons, st.floats(0.01, 0.99))
def test_no_pair_of_bounded_range_has_a_larger_divergence(order: float, eta: float, share: float) -> None:
    # Two outcomes of log-ratios t and t - eta.
    found = at(BoundedRange(eta=eta), order)
    with mp.workdps(60):
        top, low = mp.exp(mp.mpf(eta) * share), mp.exp(mp.mpf(eta) * (share - 1))
        q = (1 - low) / (top - low)
        assert two_outcomes(order, top * q, q) <= found * (1 + mp.mpf(10) ** -9)
    assert found <= min(bounded_range.rho(eta=eta) * order, eta) * (1 + 1e-12)


@given(orders, draw.multipliers, st.integers(1, 10**6))
def test_gaussian_parts_have_the_divergence_of_their_mu(order: float, sigma: float, rounds: int) -> None:
    want = rounds * order / (2 * sigma * sigma)
    assert at(Repeated(event=Gaussian(noise_multiplier=sigma), count=rounds), order) == pytest.approx(want)
    assert at(GroupGaussian(noise_multipliers=(sigma, sigma)), order) == pytest.approx(order / sigma**2)
    scores = GaussianTopK(k=1, dim=4, score_bound=1.0, scale=sigma)
    assert at(scores, order) == pytest.approx(order * 4 / (2 * sigma * sigma))


@given(orders, orders, draw.events())
def test_divergence_grows_with_the_order_and_more_slowly_than_it(
    one: float, other: float, event: Event
) -> None:
    low, high = min(one, other), max(one, other)
    assert 0 <= at(event, low) <= at(event, high) * (1 + 1e-9) + 1e-300
    # D / alpha does not grow either (van Erven and Harremoes 2014, Theorem 3, for (alpha - 1) / alpha D)
    assert at(event, high) * (1 - 1 / high) * (1 + 1e-9) >= at(event, low) * (1 - 1 / low)


@given(draw.events(), draw.events(), orders)
def test_divergences_of_releases_add_up(one: Event, other: Event, order: float) -> None:
    both = at(Composed(events=(one, other)), order)
    assert both == pytest.approx(at(one, order) + at(other, order), rel=1e-12)


@settings(max_examples=30)
@given(st.floats(1e-3, 1e3), st.floats(-300.0, -0.1).map(lambda power: 10.0**power))
def test_gaussian_noise_is_converted_at_its_best_order(mu: float, delta: float) -> None:
    found = epsilon_from_event(Gaussian(noise_multiplier=1 / mu), delta=delta)
    assert found == pytest.approx(rdp.epsilon_best(mu=mu, delta=delta), rel=1e-6, abs=1e-9)
    assert found >= rdp.epsilon_best(mu=mu, delta=delta) * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize("eta", [1e-3, 0.05, 1.0, 20.0])
def test_picks_cost_at_most_what_their_rho_says(eta: float) -> None:
    picks = Repeated(event=BoundedRange(eta=eta), count=30)
    by_rho = zcdp.epsilon_from_rho(rho=30 * bounded_range.rho(eta=eta), delta=1e-6)
    assert epsilon_from_event(picks, delta=1e-6) <= by_rho * (1 + 1e-6)
    gumbel = GumbelTopK(k=30, dim=99, score_bound=0.5, scale=1 / eta)
    assert epsilon_from_event(gumbel, delta=1e-6) == epsilon_from_event(picks, delta=1e-6)


def test_one_pure_release_costs_about_its_epsilon_at_a_tiny_delta() -> None:
    for epsilon in (1e-3, 1.0, 1e5):
        found = epsilon_from_event(PureDP(epsilon=epsilon), delta=1e-300)
        assert found == pytest.approx(epsilon, rel=0.02)
    selection = LaplaceTopK(k=1, dim=9, score_bound=1.0, scale=2e-5)
    assert epsilon_from_event(selection, delta=1e-300) == pytest.approx(1e5, rel=1e-6)


def test_what_promises_nothing_is_infinite() -> None:
    assert epsilon_from_event(NonPrivate(), delta=0.5) == math.inf
    assert epsilon_from_event(ApproximateDP(epsilon=1.0, delta=0.2), delta=0.1) == math.inf
    assert epsilon_from_event(ApproximateDP(epsilon=1.0, delta=0.2), delta=0.3) < 1.0
    assert epsilon_from_event(Composed(events=()), delta=1e-5) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, math.nan, -1.0])
def test_a_delta_outside_the_open_unit_interval_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        epsilon_from_event(PureDP(epsilon=1.0), delta=delta)
