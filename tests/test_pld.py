import math

import pytest

from accountant import gaussian, joint, pld
from accountant.events import Composed, Event, Gaussian, GroupGaussian, NonPrivate, PureDP, Repeated

pytest.importorskip("dp_accounting")


def rounds(count: int, *parts: Event) -> Event:
    return Repeated(event=Composed(events=parts), count=count)


@pytest.mark.parametrize(
    ("sigma", "eps_0", "count"),
    [
        (26.0, 0.002, 50),
        (26.0, 0.00005, 50),  # half of dp-accounting's grid
        (30.0, 0.00025, 100),  # not a multiple of it
        (3.0, 0.3, 4),
    ],
)
def test_distributions_agree_with_the_joint_sum_and_never_promise_less(
    sigma: float, eps_0: float, count: int
) -> None:
    event = rounds(count, Gaussian(noise_multiplier=sigma), PureDP(epsilon=eps_0))
    want = joint.epsilon(delta=1e-5, mu=math.sqrt(count) / sigma, pure={eps_0: count})
    assert pld.epsilon_from_event(event, delta=1e-5) == pytest.approx(want, rel=1e-6)
    assert pld.epsilon_from_event(event, delta=1e-5) >= want * (1 - 1e-9)


def test_a_repeated_response_is_counted_as_often_as_it_ran() -> None:
    a_coin = PureDP(epsilon=math.log(3))  # dp-accounting reports 1.0987 for a hundred
    assert pld.epsilon_from_event(rounds(100, a_coin), delta=1e-5) == pytest.approx(90.7815, abs=2e-3)


def test_groups_and_different_responses_compose() -> None:
    event = Composed(
        events=(
            GroupGaussian(noise_multipliers=(7.0, 12.0)),
            Repeated(event=PureDP(epsilon=0.05), count=3),
            PureDP(epsilon=0.11),
        )
    )
    want = joint.epsilon(delta=1e-5, mu=math.hypot(1 / 7, 1 / 12), pure={0.05: 3, 0.11: 1})
    assert pld.epsilon_from_event(event, delta=1e-5) == pytest.approx(want, rel=2e-3)
    assert pld.epsilon_from_event(event, delta=1e-5) >= want


def test_calibration_agrees_with_the_exact_one_on_the_safe_side() -> None:
    found = pld.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50)
    assert found == pytest.approx(26.379549270874083, rel=1e-6)
    assert found >= gaussian.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50)


def test_noise_too_small_for_the_grid_is_refused_before_memory_runs_out() -> None:
    with pytest.raises(ValueError, match="grid points; use the exact or the joint accountant"):
        pld.epsilon_from_event(Gaussian(noise_multiplier=0.01), delta=1e-5)
    with pytest.raises(ValueError, match="grid points"):
        pld.epsilon_from_event(rounds(10**6, Gaussian(noise_multiplier=1.0)), delta=1e-5)


@pytest.mark.parametrize("delta", [1e-20, 9e-13])
def test_a_delta_below_the_rounding_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="drown in rounding"):
        pld.epsilon_from_event(Gaussian(noise_multiplier=1.0), delta=delta)


@pytest.mark.parametrize("bad", [math.nan, 0.0, 1.0, -1e-5])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        pld.epsilon_from_event(Gaussian(noise_multiplier=1.0), delta=bad)


def test_a_nan_noise_multiplier_is_refused_where_dp_accounting_calls_it_free() -> None:
    with pytest.raises(ValueError, match="noise_multiplier is NaN"):
        pld.epsilon_from_event(Gaussian(noise_multiplier=math.nan), delta=1e-5)


def test_an_event_without_a_promise_costs_everything_and_no_event_nothing() -> None:
    assert pld.epsilon_from_event(Composed(events=(NonPrivate(),)), delta=1e-5) == math.inf
    assert pld.epsilon_from_event(Composed(events=()), delta=1e-5) == 0.0
