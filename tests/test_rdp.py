import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import gaussian, joint, rdp
from accountant.events import Composed, Gaussian, GroupGaussian, NonPrivate, PureDP, Repeated
from accountant.renyi import divergence, epsilon_from_event

epsilons = st.floats(-3.5, 3.0).map(lambda power: 10.0**power)
deltas = st.floats(-50.0, -0.5).map(lambda power: 10.0**power)


@given(epsilons, deltas)
def test_exact_needs_less_noise_than_best_and_best_less_than_classic(epsilon: float, delta: float) -> None:
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    exact, best, classic = (
        calibrate(**budget) for calibrate in (gaussian.sigma_from_epsilon, rdp.sigma_best, rdp.sigma_classic)
    )
    assert exact <= best <= classic


@given(epsilons, deltas)
def test_epsilon_and_sigma_are_inverse(epsilon: float, delta: float) -> None:
    best = rdp.sigma_best(epsilon=epsilon, delta=delta)
    assert rdp.epsilon_best(mu=1 / best, delta=delta) == pytest.approx(epsilon, rel=1e-8)
    classic = rdp.sigma_classic(epsilon=epsilon, delta=delta)
    assert rdp.epsilon_classic(mu=1 / classic, delta=delta) == pytest.approx(epsilon, rel=1e-9)


@given(st.floats(0.01, 50.0), deltas)
def test_no_order_beats_the_continuous_search(mu: float, delta: float) -> None:
    orders = 1 + np.geomspace(1e-3, 1e6, 300)
    rho, log_inverse = mu * mu / 2, -math.log(delta)
    classic = rho * orders + log_inverse / (orders - 1)
    best = rho * orders + np.log1p(-1 / orders) + (log_inverse - np.log(orders)) / (orders - 1)
    assert rdp.epsilon_classic(mu=mu, delta=delta) <= classic.min() * (1 + 1e-12)
    assert rdp.epsilon_best(mu=mu, delta=delta) <= max(best.min(), 0.0) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 30.0])
def test_a_grid_of_orders_never_needs_less_noise_than_all_orders(epsilon: float) -> None:
    coded = rdp.sigma_classic(epsilon=epsilon, delta=1e-5, rounds=9, orders=rdp.VPDR_ORDERS)
    assert coded >= rdp.sigma_classic(epsilon=epsilon, delta=1e-5, rounds=9)
    mu = 3 / coded
    assert rdp.epsilon_classic(mu=mu, delta=1e-5, orders=rdp.VPDR_ORDERS) == pytest.approx(epsilon, rel=1e-10)


@pytest.mark.parametrize(
    ("epsilon", "best", "classic"),
    [(0.1, 33.982, 48.307), (1.0, 4.0451, 4.9006), (8.0, 0.63765, 0.69035), (32.0, 0.21382, 0.22074)],
)
def test_noise_agrees_with_the_reference_table(epsilon: float, best: float, classic: float) -> None:
    assert rdp.sigma_best(epsilon=epsilon, delta=1e-5) == pytest.approx(best, rel=3e-5)
    orders = rdp.VPDR_ORDERS if epsilon == 0.1 else None
    found = rdp.sigma_classic(epsilon=epsilon, delta=1e-5, orders=orders)
    assert found == pytest.approx(classic, rel=5e-5)


def test_an_epsilon_out_of_reach_of_the_grid_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"out of reach of orders up to 512.*use the exact calibration"):
        rdp.sigma_classic(epsilon=0.003, delta=1e-5, orders=rdp.VPDR_ORDERS)


@pytest.mark.parametrize("orders", [(), (0.5, 2.0), (1.0,), (math.nan,)])
def test_orders_must_lie_above_one(orders: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="each finite and above 1"):
        rdp.epsilon_classic(mu=1.0, delta=1e-5, orders=orders)


@pytest.mark.parametrize("count", [1, 40])
def test_events_are_no_worse_than_dp_accountings_and_close(count: int) -> None:
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    ours = epsilon_from_event(Repeated(event=Gaussian(noise_multiplier=7.0), count=count), delta=1e-5)
    theirs = RdpAccountant().compose(dp.SelfComposedDpEvent(dp.GaussianDpEvent(7.0), count))
    assert theirs.get_epsilon(1e-5) * (1 - 5e-3) <= ours <= theirs.get_epsilon(1e-5) * (1 + 1e-9)

    ours = epsilon_from_event(Repeated(event=PureDP(epsilon=0.2), count=count), delta=1e-5)
    response = dp.RandomizedResponseDpEvent(2 / (1 + math.exp(0.2)), 2)
    theirs = RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    want = theirs.compose(response, count).get_epsilon(1e-5)
    assert want * (1 - 2e-2) <= ours <= want * (1 + 1e-9)


def test_the_divergence_of_a_pure_part_is_that_of_two_coins() -> None:
    orders = np.array([1.5, 2.0, 8.0, 64.0])
    ours = divergence(Repeated(event=PureDP(epsilon=0.7), count=3), orders)
    by_definition = [
        3 * math.log(sum(p**a * q ** (1 - a) for p, q in _coin(0.7))) / (a - 1) for a in orders.tolist()
    ]
    assert ours == pytest.approx(by_definition, rel=1e-12)


def _coin(epsilon: float) -> list[tuple[float, float]]:
    truthful = 1 / (1 + math.exp(-epsilon))
    return [(truthful, 1 - truthful), (1 - truthful, truthful)]


def test_events_cost_more_by_renyi_than_jointly() -> None:
    a_round = Composed(events=(PureDP(epsilon=0.002), GroupGaussian(noise_multipliers=(40.0, 35.0))))
    event = Repeated(event=a_round, count=50)
    mu = math.sqrt(50) * math.hypot(1 / 40, 1 / 35)
    by_renyi = epsilon_from_event(event, delta=1e-5)
    assert by_renyi > joint.epsilon(delta=1e-5, mu=mu, pure={0.002: 50})
    assert by_renyi == pytest.approx(rdp.epsilon_best(mu=mu, delta=1e-5), rel=0.03)


def test_an_event_without_a_promise_costs_everything_and_no_event_nothing() -> None:
    assert epsilon_from_event(Composed(events=(NonPrivate(),)), delta=1e-5) == math.inf
    assert epsilon_from_event(Composed(events=()), delta=1e-5) == 0.0


def test_epsilon_is_never_negative() -> None:
    assert rdp.epsilon_best(mu=1e-3, delta=0.5) == 0.0
    assert epsilon_from_event(Gaussian(noise_multiplier=1000.0), delta=0.5) == 0.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 0.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    for calibrate in (rdp.sigma_best, rdp.sigma_classic):
        with pytest.raises(ValueError, match="epsilon"):
            calibrate(epsilon=bad, delta=1e-5)
        with pytest.raises(ValueError, match="delta"):
            calibrate(epsilon=1.0, delta=bad)
    for convert in (rdp.epsilon_best, rdp.epsilon_classic):
        with pytest.raises(ValueError, match="mu"):
            convert(mu=bad, delta=1e-5)
