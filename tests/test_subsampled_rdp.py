import itertools
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import rdp, subsampled_rdp
from accountant.subsampled_rdp import divergence

rates = st.one_of(st.floats(1e-9, 1.0), st.floats(-200.0, -1e-3).map(math.exp))
multipliers = st.floats(-3.0, 5.0).map(lambda power: 10.0**power)
excesses = st.floats(-9.0, 9.0).map(lambda power: 10.0**power)


def quadrature(order: float, sigma: float, q: float) -> float:
    """D_order by mpmath, from the definition."""
    with mp.workdps(30):
        a, s, rate = mp.mpf(order), mp.mpf(sigma), mp.mpf(q)

        def integrand(z: Any) -> Any:
            return mp.npdf(z) * (1 - rate + rate * mp.exp(z / s - 1 / (2 * s * s))) ** a

        bend = float(s * mp.log((1 - rate) / rate) + 1 / (2 * s))
        marks = [-14.0, 0.0, *(bend + sigma * u for u in (-20, -5, 0, 5, 20))]
        marks += [order / sigma + z for z in (-14, 0, 14)]
        edges = sorted(mark for mark in marks if -14 <= mark <= order / sigma + 14)
        points = [-mp.inf]
        for left, right in itertools.pairwise(edges):
            points += list(np.linspace(left, right, min(20, max(2, int((right - left) / 3)))))
        return float(mp.log(mp.quad(integrand, [*points, mp.inf])) / (a - 1))


@pytest.mark.parametrize(
    ("order", "sigma", "q"),
    [
        (1.0001, 1.0, 0.01),
        (1.5, 0.05, 1e-4),  # a bend far narrower than the bell
        (2.0, 1000.0, 1e-8),  # 1e-22 above no cost at all
        (3.7, 0.3, 0.9999),
        (17.3, 3.0, 0.01),
        (64.0, 0.7, 0.3),
        (1000.5, 30.0, 0.01),  # two peaks
    ],
)
def test_the_divergence_is_its_definition(order: float, sigma: float, q: float) -> None:
    found = float(divergence(order=order, noise_multiplier=sigma, sampling_rate=q))
    assert found == pytest.approx(quadrature(order, sigma, q), rel=1e-10)


@pytest.mark.parametrize(("sigma", "q"), [(0.5, 0.01), (1.0, 0.2), (4.0, 0.001)])
def test_dp_accounting_and_opacus_agree_at_their_orders(sigma: float, q: float) -> None:
    dp = pytest.importorskip("dp_accounting")
    analysis = pytest.importorskip("opacus.accountants.analysis.rdp")
    orders = [2.0, 3.0, 12.0, 63.0]  # its series for fractions stop early: 0.1 % too large at 3.25
    accountant = dp.rdp.RdpAccountant(orders)
    accountant.compose(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma)))
    found = divergence(order=orders, noise_multiplier=sigma, sampling_rate=q)
    np.testing.assert_allclose(found, accountant._rdp, rtol=1e-7)
    orders = [1.5, 2.0, 3.25, 12.5, 63.0]
    found = divergence(order=orders, noise_multiplier=sigma, sampling_rate=q)
    theirs = analysis.compute_rdp(q=q, noise_multiplier=sigma, steps=1, orders=orders)
    np.testing.assert_allclose(found, theirs, rtol=1e-6)


@given(excesses, multipliers)
def test_a_rate_of_one_is_the_gaussian(excess: float, sigma: float) -> None:
    found = divergence(order=1 + excess, noise_multiplier=sigma, sampling_rate=1.0)
    assert float(found) == pytest.approx((1 + excess) / (2 * sigma**2), rel=1e-14)


@settings(deadline=None)
@given(excesses, multipliers, rates)
def test_sampling_never_costs_more_and_more_of_it_never_less(excess: float, sigma: float, q: float) -> None:
    some, half = (
        float(divergence(order=1 + excess, noise_multiplier=sigma, sampling_rate=rate)) for rate in (q, q / 2)
    )
    assert 0 <= half <= some * (1 + 1e-9) <= (1 + excess) / (2 * sigma**2) * (1 + 1e-8)


@settings(deadline=None)
@given(multipliers, rates)
def test_the_log_moment_is_convex_in_the_order(sigma: float, q: float) -> None:
    orders = 1 + np.geomspace(1e-3, 1e5, 40)
    moment = (orders - 1) * divergence(order=orders, noise_multiplier=sigma, sampling_rate=q)
    slopes = np.diff(moment) / np.diff(orders)
    assert np.all(slopes[1:] >= slopes[:-1] * (1 - 1e-7) - 1e-25)


def test_many_orders_keep_their_shape() -> None:
    orders = np.array([[1.1, 2.0], [30.0, 4e5]])
    found = divergence(order=orders, noise_multiplier=2.0, sampling_rate=0.3)
    alone = [float(divergence(order=o, noise_multiplier=2.0, sampling_rate=0.3)) for o in orders.ravel()]
    assert found.shape == (2, 2)
    np.testing.assert_allclose(found.ravel(), alone, rtol=1e-13)


@pytest.mark.parametrize("sigma", [0.01, 0.8, 20.0, 1e4])
def test_the_best_order_beats_every_grid(sigma: float) -> None:
    setting: dict[str, Any] = {"noise_multiplier": sigma, "sampling_rate": 0.02}
    orders = 1 + np.geomspace(1e-6, 1e8, 400)
    spent = 300 * divergence(order=orders, **setting)
    costs = spent + np.log1p(-1 / orders) - (math.log(1e-6) + np.log(orders)) / (orders - 1)
    found = subsampled_rdp.epsilon(**setting, steps=300, delta=1e-6)
    assert found <= max(0.0, costs.min()) * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("steps", [1, 50, 10**6])
def test_without_sampling_it_is_the_gaussian_curve(steps: int) -> None:
    found = subsampled_rdp.epsilon(noise_multiplier=9.0, sampling_rate=1.0, steps=steps, delta=1e-5)
    assert found == pytest.approx(rdp.epsilon_best(mu=math.sqrt(steps) / 9, delta=1e-5), rel=1e-5)


@settings(deadline=None, max_examples=30)
@given(multipliers, rates, st.sampled_from((1, 1000, 10**6)), st.floats(-600.0, -0.01).map(math.exp))
def test_no_extreme_is_negative_or_no_number(sigma: float, q: float, steps: int, delta: float) -> None:
    found = subsampled_rdp.epsilon(noise_multiplier=sigma, sampling_rate=q, steps=steps, delta=delta)
    assert 0 <= found < math.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampling_rate": 0.0}, "sampling_rate=0 never uses a record"),
        ({"sampling_rate": 1.5}, "sampling_rate=1.5 must lie between 0 and 1"),
        ({"noise_multiplier": -1.0}, "noise_multiplier=-1.0 must be finite and above 0"),
        ({"noise_multiplier": math.nan}, "noise_multiplier is NaN"),
        ({"order": 1.0}, "order=1.0 must be finite and above 1"),
        ({"order": [2.0, math.nan]}, "must be finite and above 1"),
    ],
)
def test_what_is_no_step_is_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        divergence(**({"order": 2.0, "noise_multiplier": 1.0, "sampling_rate": 0.1} | change))
