import math
import subprocess
import sys
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from accountant.gaussian import (
    delta_from_mu,
    epsilon_from_mu,
    log_delta_from_mu,
    mu_from_epsilon,
    mu_from_pure_epsilon,
    mu_from_sigma,
    sigma_from_epsilon,
)
from tests import exact


def logs(low: float, high: float) -> SearchStrategy[float]:
    """Numbers spread evenly over the powers of ten from 10^low to 10^high."""
    return st.floats(low, high).map(lambda power: 10.0**power)


deltas = st.one_of(logs(-300, -0.01), st.floats(1e-6, 1 - 1e-12))


def exact_mu(epsilon: float, delta: float, near: float) -> Any:
    """Polish a root by Newton steps in forty digits."""
    mu = mp.mpf(near)
    for _ in range(2):
        log_delta = exact.log_delta(mp.mpf(epsilon), mu)
        slope = mp.npdf(epsilon / mu - mu / 2) / mp.exp(log_delta)
        mu -= (log_delta - mp.log(mp.mpf(delta))) / slope
    return mu


@given(logs(-4, 3), st.floats(-1.5, 0.4))
def test_log_delta_agrees_with_mpmath(epsilon: float, power: float) -> None:
    mu = math.sqrt(2 * epsilon) * 10**power
    assert log_delta_from_mu(epsilon=epsilon, mu=mu) == pytest.approx(
        float(exact.log_delta(epsilon, mu)), rel=1e-11
    )


@given(logs(-9, 1.3), logs(-3, 1.3))
def test_log_delta_at_negative_epsilon_agrees_with_mpmath(x: float, mu: float) -> None:
    size = x * mu
    got = log_delta_from_mu(epsilon=-size, mu=mu)
    assert got == pytest.approx(float(exact.log_delta(-size, mu)), rel=1e-11)


@pytest.mark.parametrize("epsilon", [1e3, 1e5, 1e8])
def test_log_delta_has_no_trouble_where_exp_of_epsilon_overflows(epsilon: float) -> None:
    with mp.workdps(60):
        mu = float(mp.sqrt(2 * mp.mpf(epsilon)))
        x, y = mp.mpf(epsilon) / mu - mp.mpf(mu) / 2, mp.mpf(epsilon) / mu + mp.mpf(mu) / 2
        want = mp.log(mp.npdf(x) * (exact.mills_ratio(x) - 1 / y + 1 / y**3 - 3 / y**5))
    assert log_delta_from_mu(epsilon=epsilon, mu=mu) == pytest.approx(float(want), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "mu"), [(1.0, 1e-200), (1e300, 1.0), (1e5, 1e-310)])
def test_a_delta_beyond_every_float_is_minus_infinity(epsilon: float, mu: float) -> None:
    assert log_delta_from_mu(epsilon=epsilon, mu=mu) == -math.inf
    assert delta_from_mu(epsilon=epsilon, mu=mu) == 0.0


@given(st.floats(-5, 50), logs(-2, 1), logs(-4, 0))
def test_delta_falls_with_epsilon_and_grows_with_mu(epsilon: float, mu: float, step: float) -> None:
    here = log_delta_from_mu(epsilon=epsilon, mu=mu)
    assert log_delta_from_mu(epsilon=epsilon + step, mu=mu) <= here
    assert log_delta_from_mu(epsilon=epsilon, mu=mu * (1 + step)) >= here
    assert here <= 0


@given(logs(-4, 3), st.floats(-1.5, 0.4), logs(-3, 0))
def test_log_delta_is_concave_which_keeps_newton_on_the_safe_side(
    epsilon: float, power: float, step: float
) -> None:
    mu = math.sqrt(2 * epsilon) * 10**power

    def log_delta(wider: float, factor: float) -> float:
        return log_delta_from_mu(epsilon=epsilon * (1 + wider), mu=mu * factor)

    middle = log_delta(0.0, 1.0)
    rounding = 1e-12 * abs(middle)
    assert log_delta(0.0, 1 + step) + log_delta(0.0, 1 / (1 + step)) <= 2 * middle + rounding
    assert log_delta(step, 1.0) + log_delta(-step, 1.0) <= 2 * middle + rounding


@given(logs(-4, 5), deltas)
def test_mu_is_exact_to_1e_12_and_never_too_large(epsilon: float, delta: float) -> None:
    mu = mu_from_epsilon(epsilon=epsilon, delta=delta)
    want = exact_mu(epsilon, delta, mu)
    assert 0 < float(1 - mp.mpf(mu) / want) < 1e-12


@given(logs(-4, 5), deltas, st.integers(1, 10**6))
def test_sigma_keeps_its_promise(epsilon: float, delta: float, rounds: int) -> None:
    sigma = sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)
    mu = mu_from_sigma(sigma=sigma, rounds=rounds)
    assert delta_from_mu(epsilon=epsilon, mu=mu) <= delta
    assert log_delta_from_mu(epsilon=epsilon, mu=mu * (1 + 1e-11)) > math.log(delta)


@given(logs(-5, 3), deltas)
def test_epsilon_keeps_its_promise_and_wastes_nothing(mu: float, delta: float) -> None:
    epsilon = epsilon_from_mu(mu=mu, delta=delta)
    target = math.log(delta)
    assert log_delta_from_mu(epsilon=epsilon, mu=mu) <= target
    less = epsilon - 1e-9 * max(epsilon, mu)
    assert epsilon == 0 or log_delta_from_mu(epsilon=less, mu=mu) > target


@given(logs(-3, 4), logs(-100, -1))
def test_epsilon_and_mu_are_inverse(epsilon: float, delta: float) -> None:
    mu = mu_from_epsilon(epsilon=epsilon, delta=delta)
    assert epsilon_from_mu(mu=mu, delta=delta) == pytest.approx(epsilon, rel=1e-10)


def test_epsilon_is_zero_when_delta_covers_the_total_variation() -> None:
    total_variation = math.erf(0.3 / math.sqrt(8))
    assert epsilon_from_mu(mu=0.3, delta=total_variation * (1 + 1e-12)) == 0.0
    assert epsilon_from_mu(mu=0.3, delta=total_variation * (1 - 1e-12)) > 0.0


@pytest.mark.parametrize("delta", [1e-300, 1e-5, 0.5, 1 - 1e-12])
def test_calibration_at_epsilon_zero_bounds_the_total_variation(delta: float) -> None:
    mu = mu_from_epsilon(epsilon=0.0, delta=delta)
    assert math.erf(mu / math.sqrt(8)) == pytest.approx(delta, rel=1e-11)


@pytest.mark.parametrize("mu", [0.9e7, 1.1e7, 1e12])
def test_a_huge_mu_costs_half_its_square(mu: float) -> None:
    epsilon = epsilon_from_mu(mu=mu, delta=0.5)
    assert epsilon == pytest.approx(mu * mu / 2, rel=1e-7)
    assert mu_from_epsilon(epsilon=epsilon, delta=0.5) == pytest.approx(mu, rel=1e-7)


@given(st.floats(1e-3, 700.0))
def test_a_pure_epsilon_becomes_the_smallest_mu_that_covers_it(epsilon: float) -> None:
    mu = mu_from_pure_epsilon(epsilon=epsilon)
    total_variation = math.tanh(epsilon / 2)  # where the two trade-off curves touch
    assert math.erf(mu / math.sqrt(8)) == pytest.approx(total_variation, rel=1e-11)


def test_a_pure_epsilon_beyond_exp_still_has_a_mu() -> None:
    assert mu_from_pure_epsilon(epsilon=1e4) == pytest.approx(2 * math.sqrt(2e4), rel=1e-2)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
def test_bad_numbers_are_refused_by_name(bad: float) -> None:
    with pytest.raises(ValueError, match="epsilon"):
        sigma_from_epsilon(epsilon=bad, delta=1e-5)
    with pytest.raises(ValueError, match="delta"):
        sigma_from_epsilon(epsilon=1.0, delta=bad)
    with pytest.raises(ValueError, match="mu"):
        epsilon_from_mu(mu=bad, delta=1e-5)
    with pytest.raises(ValueError, match="sigma"):
        mu_from_sigma(sigma=bad)
    with pytest.raises(ValueError, match="mu"):
        log_delta_from_mu(epsilon=1.0, mu=bad)


@pytest.mark.parametrize("delta", [0.0, 1.0, 1.5])
def test_a_delta_that_no_gaussian_reaches_is_refused(delta: float) -> None:
    with pytest.raises(ValueError, match=r"delta=.* must lie strictly between 0 and 1"):
        mu_from_epsilon(epsilon=1.0, delta=delta)
    with pytest.raises(ValueError, match=r"delta=.* must lie strictly between 0 and 1"):
        epsilon_from_mu(mu=1.0, delta=delta)


@pytest.mark.parametrize("rounds", [0, -3, 2.5, math.nan])
def test_rounds_must_be_a_whole_number(rounds: float) -> None:
    plain: Any = getattr(
        sigma_from_epsilon, "__wrapped__", sigma_from_epsilon
    )  # without the test's type checks
    with pytest.raises(ValueError, match="rounds"):
        plain(epsilon=1.0, delta=1e-5, rounds=rounds)


def test_zero_noise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sigma=0.0 must be finite and above 0"):
        mu_from_sigma(sigma=0.0)


def test_the_closed_forms_load_the_standard_library_only() -> None:
    code = (
        "import sys, accountant, accountant.gaussian as g;"
        "g.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50);"
        "print(sorted({m.partition('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)))"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=_root()
    )
    assert found.stdout.strip() in ("['__main__', 'accountant']", "['accountant']")


def _root() -> str:
    import accountant

    return str(next(iter(accountant.__path__))).rsplit("accountant", 1)[0]
