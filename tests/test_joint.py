import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import gaussian, joint, sequential
from accountant.bracket import safe_root
from accountant.gaussian_array import log_delta_from_mu
from accountant.response import TooManyAtomsError, losses
from tests import exact

pure_epsilons = st.floats(-4.0, 0.5).map(lambda power: 10.0**power)
pures = st.dictionaries(pure_epsilons, st.integers(1, 12), min_size=1, max_size=2)
mus = st.floats(-4.0, 1.0).map(lambda power: 10.0**power)


@settings(max_examples=40)
@given(pures, st.one_of(mus, st.just(0.0)), st.floats(0.0, 0.95))
def test_the_sum_agrees_with_mpmath_outcome_by_outcome(
    pure: dict[float, int], mu: float, share: float
) -> None:
    total = sum(eps * times for eps, times in pure.items())
    epsilon = share * (total + 5 * mu + mu * mu / 2)
    want = exact.log_delta_joint(epsilon, mu, pure) if mu > 0 or epsilon < total else -mp.inf
    got = joint.log_delta(epsilon=epsilon, mu=mu, pure=pure)
    assert got == pytest.approx(float(want), rel=1e-11, abs=1e-13)


@given(st.floats(-30, 1e4), st.floats(-3.0, 3.0))
def test_the_array_form_is_the_scalar_form(ratio: float, power: float) -> None:
    mu = 10.0**power
    epsilon = ratio * mu
    got = log_delta_from_mu(np.array([epsilon, epsilon]), mu)
    want = gaussian.log_delta_from_mu(epsilon=epsilon, mu=mu)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mu", [1e-9, 1e-5, 0.02999, 0.03001, 1.99, 2.01, 500.0])
def test_the_array_form_has_no_seams(mu: float) -> None:
    epsilon = mu * np.array([-1e6, -1e3, -8.0, -1e-6, 0.0, 1e-6, 0.5, 8.0, 999.0, 1001.0, 1e6])
    want = [gaussian.log_delta_from_mu(epsilon=float(e), mu=mu) for e in epsilon]
    np.testing.assert_allclose(log_delta_from_mu(epsilon, mu), want, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("epsilon", "times"), [(1e-3, 7), (0.1, 1600), (1e-4, 10**6), (2.0, 10**5)])
def test_masses_of_many_responses_agree_with_the_binomial(epsilon: float, times: int) -> None:
    found = losses({epsilon: times})
    best = int(np.argmax(found.log_mass))
    spread = int(math.sqrt(times))
    for at in {max(best - 3 * spread, 0), best, min(best + 3 * spread, found.loss.size - 1)}:
        hits = round((found.loss[at] / epsilon + times) / 2)
        with mp.workdps(40):
            p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
            want = mp.log(mp.binomial(times, hits)) + hits * mp.log(p) + (times - hits) * mp.log(1 - p)
        assert found.log_mass[at] == pytest.approx(float(want), abs=1e-11)
    assert np.exp(found.log_mass).sum() == pytest.approx(1.0, abs=1e-12)
    assert found.log_certain < -740
    assert (found.log_certain == -math.inf) == (found.loss.size == times + 1)


@settings(max_examples=40)
@given(pures, mus, st.floats(-12.0, -0.5).map(lambda power: 10.0**power))
def test_joint_epsilon_lies_between_its_parts_and_their_sum(
    pure: dict[float, int], mu: float, delta: float
) -> None:
    epsilon = joint.epsilon(delta=delta, mu=mu, pure=pure)
    assert epsilon >= gaussian.epsilon_from_mu(mu=mu, delta=delta) * (1 - 1e-11)
    assert epsilon <= sequential.epsilon(delta=delta, mu=mu, pure=pure) * (1 + 1e-11)
    as_gaussian = math.hypot(mu, joint.gaussian_equivalent(pure))
    assert epsilon <= gaussian.epsilon_from_mu(mu=as_gaussian, delta=delta) * (1 + 1e-11)
    assert joint.delta(epsilon=epsilon, mu=mu, pure=pure) <= delta
    assert epsilon == 0 or joint.delta(epsilon=epsilon * (1 - 1e-9), mu=mu, pure=pure) >= delta * (1 - 1e-12)


@settings(max_examples=40)
@given(st.floats(0.05, 20.0), st.floats(0.02, 0.5), st.integers(1, 200), st.floats(-15, -2))
def test_vpp_noise_keeps_its_promise_and_beats_the_split(
    epsilon: float, share: float, rounds: int, power: float
) -> None:
    delta = 10.0**power
    budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds}
    sigma = joint.sigma_from_epsilon(**budget, selection_share=share)
    pure = {share * epsilon / rounds: rounds}
    mu = math.sqrt(rounds) / sigma
    assert joint.delta(epsilon=epsilon, mu=mu, pure=pure) <= delta
    assert joint.delta(epsilon=epsilon, mu=mu * (1 + 1e-10), pure=pure) > delta * (1 - 1e-12)
    assert gaussian.sigma_from_epsilon(**budget) < sigma
    assert sigma <= sequential.sigma_from_epsilon(**budget, selection_share=share) * (1 + 1e-11)


@pytest.mark.parametrize(
    ("epsilon", "share", "rounds", "want"),
    [(1.0, 0.1, 50, 26.416), (1.0, 0.2, 100, 37.411), (2.0, 0.05, 20, 8.926), (8.0, 0.2, 10, 1.989)],
)
def test_vpp_noise_agrees_with_the_published_table(
    epsilon: float, share: float, rounds: int, want: float
) -> None:
    found = joint.sigma_from_epsilon(epsilon=epsilon, delta=1e-5, rounds=rounds, selection_share=share)
    assert found == pytest.approx(want, abs=6e-4)


def test_a_million_rounds_approach_the_gaussian_limit() -> None:
    sigma = joint.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=10**6, selection_share=0.1)
    few = joint.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=10**4, selection_share=0.1)
    assert sigma / 1000 == pytest.approx(few / 100, rel=1e-5)


@settings(max_examples=40)
@given(st.floats(-4.0, 2.0), st.floats(-300.0, -0.1), st.floats(-15.0, -6.0))
def test_a_negligible_response_changes_next_to_nothing(power: float, log_delta: float, tiny: float) -> None:
    mu, delta, eps_0 = 10.0**power, 10.0**log_delta, 10.0 ** (power + tiny)
    alone = gaussian.epsilon_from_mu(mu=mu, delta=delta)
    found = joint.epsilon(delta=delta, mu=mu, pure={eps_0: 3})
    assert alone <= found <= alone * (1 + 3e-12) + 3.1 * eps_0


def test_equal_responses_may_be_named_together_or_apart() -> None:
    together = joint.log_delta(epsilon=0.7, mu=0.3, pure={0.05: 6})
    apart = joint.log_delta(epsilon=0.7, mu=0.3, pure={0.05: 2, 0.05 * (1 + 1e-15): 4})
    assert apart == pytest.approx(together, rel=1e-12)


def test_pure_parts_alone_need_no_delta() -> None:
    assert joint.epsilon(delta=0.0, mu=0.0, pure={0.25: 4, 1.0: 1}) == 2.0
    assert joint.log_delta(epsilon=2.0, mu=0.0, pure={0.25: 4, 1.0: 1}) == -math.inf
    assert joint.log_delta(epsilon=1.999, mu=0.0, pure={0.25: 4, 1.0: 1}) > -math.inf


def test_nothing_released_costs_nothing() -> None:
    assert joint.epsilon(delta=1e-5, mu=0.0, pure={}) == 0.0
    assert joint.log_delta(epsilon=0.0, mu=0.0, pure={}) == -math.inf
    assert joint.mu_from_epsilon(epsilon=1.0, delta=1e-5, pure={}) == gaussian.mu_from_epsilon(
        epsilon=1.0, delta=1e-5
    )


def test_a_response_may_lose_more_than_exp_can_hold() -> None:
    assert joint.epsilon(delta=1e-5, mu=0.0, pure={2000.0: 1}) == pytest.approx(2000 + math.log1p(-1e-5))
    assert joint.log_delta(epsilon=0.0, mu=0.1, pure={2000.0: 3}) == 0.0


def test_a_pure_part_that_spends_everything_is_refused() -> None:
    with pytest.raises(ValueError, match="leave nothing for the Gaussian part"):
        joint.mu_from_epsilon(epsilon=0.5, delta=1e-5, pure={1.0: 1})


def test_a_pure_part_above_epsilon_but_within_delta_leaves_room() -> None:
    pure = {0.02: 100}  # 2 in all, but 0.9 at this delta
    mu = joint.mu_from_epsilon(epsilon=1.2, delta=1e-5, pure=pure)
    assert mu > 0
    assert joint.epsilon(delta=1e-5, mu=mu, pure=pure) == pytest.approx(1.2, rel=1e-9)


def test_too_many_distinct_epsilons_are_refused_with_the_way_out() -> None:
    with pytest.raises(TooManyAtomsError, match="round them up to fewer distinct values"):
        joint.epsilon(delta=1e-5, mu=0.1, pure={0.01 * k: 1 for k in range(1, 40)})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -0.1])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="mu"):
        joint.epsilon(delta=1e-5, mu=bad, pure={0.1: 1})
    with pytest.raises(ValueError, match="epsilon"):
        joint.epsilon(delta=1e-5, mu=0.1, pure={bad: 1})
    with pytest.raises(ValueError, match="delta"):
        joint.epsilon(delta=bad, mu=0.1, pure={0.1: 1})
    with pytest.raises(ValueError, match="selection_share"):
        joint.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=2, selection_share=bad)
    with pytest.raises(ValueError, match="times"):
        joint.epsilon(delta=1e-5, mu=0.1, pure={0.1: 0})


def test_a_bad_pure_part_is_refused_on_every_path() -> None:
    for pure in ({-1.0: 1}, {math.nan: 1}, {1.0: 0}):
        with pytest.raises(ValueError, match=r"epsilon|times"):
            joint.epsilon(delta=0.0, mu=0.0, pure=pure)
        with pytest.raises(ValueError, match=r"epsilon|times"):
            joint.log_delta(epsilon=1.0, mu=0.1, pure=pure)
        with pytest.raises(ValueError, match=r"epsilon|times"):
            sequential.epsilon(delta=1e-5, mu=0.1, pure=pure)


def test_delta_zero_with_gaussian_noise_is_refused() -> None:
    with pytest.raises(ValueError, match=r"delta=0\.0 must lie strictly between 0 and 1"):
        joint.epsilon(delta=0.0, mu=0.1, pure={0.1: 1})


@given(st.floats(0.01, 100.0))
def test_safe_root_stays_on_the_safe_side(root: float) -> None:
    found = safe_root(lambda x: (x - root) ** 3, safe=0.0, unsafe=1000.0)
    assert found <= root
    assert found == pytest.approx(root, rel=1e-5)  # a triple root is flat
    found = safe_root(lambda x: root - x, safe=1000.0, unsafe=0.0)
    assert root <= found <= root * (1 + 1e-12)


def test_safe_root_knows_when_an_end_is_the_answer() -> None:
    assert safe_root(lambda x: -1.0, safe=0.0, unsafe=5.0) == 5.0
    with pytest.raises(ValueError, match="is not safe"):
        safe_root(lambda x: 1.0, safe=0.0, unsafe=5.0)
