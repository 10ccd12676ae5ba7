import math
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import gaussian, subsampled
from accountant.bound import Bound
from accountant.contract import Relation
from accountant.tradeoff import GaussianCurve

REPLACE = Relation.REPLACE_SAME_LABEL


def test_the_cost_lies_within_that_of_the_prv_accountant() -> None:
    spent = subsampled.epsilon(noise_multiplier=0.7, sampling_rate=0.01, steps=1000, delta=1e-5)
    assert 4.61 < spent.epsilon < 4.629  # opacus' GDP accountant says 3.476
    assert spent.bound is Bound.UPPER


def test_a_small_rate_can_cost_nothing() -> None:
    setting = {"noise_multiplier": 1.0, "sampling_rate": 0.00105, "steps": 1}
    assert subsampled.epsilon(**setting, delta=1e-3).epsilon == 0.0
    variation = 0.00105 * math.erf(0.5 / math.sqrt(2))  # q (2 Phi(1/2) - 1) = 4.02e-4
    assert subsampled.delta(**setting, epsilon=0.0) == pytest.approx(variation, rel=1e-6)


@pytest.mark.parametrize("steps", [1, 10**6])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, REPLACE])
def test_without_sampling_it_is_exact(steps: int, relation: Relation) -> None:
    mu = (2 if relation is REPLACE else 1) * math.sqrt(steps) / 3.0
    setting = {"noise_multiplier": 3.0, "sampling_rate": 1.0, "steps": steps, "relation": relation}
    spent = subsampled.epsilon(**setting, delta=1e-6)
    assert spent.epsilon == gaussian.epsilon_from_mu(mu=mu, delta=1e-6)
    assert spent.bound is Bound.EXACT
    assert subsampled.delta(**setting, epsilon=2.0) == gaussian.delta_from_mu(epsilon=2.0, mu=mu)


@settings(deadline=None, max_examples=25)
@given(
    st.floats(-3.0, 5.0).map(lambda power: 10.0**power),
    st.floats(-20.0, 0.0).map(math.exp),
    st.sampled_from((1, 30, 10**6)),
    st.floats(-80.0, -0.1).map(math.exp),
)
def test_sampling_only_helps_and_replacing_only_costs(
    sigma: float, rate: float, steps: int, delta: float
) -> None:
    setting = {"noise_multiplier": sigma, "sampling_rate": rate, "steps": steps, "delta": delta}
    once = subsampled.epsilon(**setting)
    twice = subsampled.epsilon(**setting, relation=REPLACE)
    assert 0 <= once.epsilon <= gaussian.epsilon_from_mu(mu=math.sqrt(steps) / sigma, delta=delta)
    assert once.epsilon <= twice.epsilon * (1 + 1e-3) + 1e-9
    assert twice.epsilon <= gaussian.epsilon_from_mu(mu=2 * math.sqrt(steps) / sigma, delta=delta)


@pytest.mark.parametrize("relation", [r for r in Relation if not r.about_clients])
def test_delta_undoes_epsilon(relation: Relation) -> None:
    setting = {"noise_multiplier": 1.1, "sampling_rate": 0.02, "steps": 400, "relation": relation}
    epsilon = subsampled.epsilon(**setting, delta=1e-6).epsilon
    assert subsampled.delta(**setting, epsilon=epsilon) == pytest.approx(1e-6, rel=1e-6)


def test_a_delta_too_small_for_distributions_is_met_by_the_renyi_curve() -> None:
    spent = subsampled.epsilon(noise_multiplier=1.0, sampling_rate=0.01, steps=100, delta=1e-30)
    assert spent.method == "Renyi divergence"
    assert spent.epsilon < gaussian.epsilon_from_mu(mu=10.0, delta=1e-30)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sampling_rate": 1.5}, "sampling_rate=1.5 must lie between 0 and 1"),
        ({"sampling_rate": 0.0}, "sampling_rate=0 never uses a record"),
        ({"steps": 0}, "steps=0 must be a whole number"),
        ({"delta": 0.0}, "delta=0.0 must lie strictly between 0 and 1"),
        ({"noise_multiplier": 0.0}, "noise_multiplier=0.0 must be finite and above 0"),
    ],
)
def test_what_is_no_run_is_refused(change: dict, message: str) -> None:
    setting = {"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 5, "delta": 1e-5}
    with pytest.raises(ValueError, match=message):
        subsampled.epsilon(**(setting | change))


@pytest.mark.parametrize(
    ("epsilon", "rate", "steps", "delta"),
    [
        (1.0, 0.01, 1000, 1e-5),
        (1.0, 0.1, 100, 1e-5),
        (1.0, 0.001, 100_000, 1e-5),  # where a coarse grid says 1.58 instead of 1.36
        (0.01, 0.3, 10, 1e-5),
        (20.0, 0.05, 50, 1e-9),
        (1.0, 0.01, 100, 1e-20),  # beyond distributions
        (1e5, 0.01, 1000, 1e-5),
    ],
)
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, REPLACE])
def test_the_noise_keeps_its_budget_and_hardly_less_does(
    epsilon: float, rate: float, steps: int, delta: float, relation: Relation
) -> None:
    setting = {"sampling_rate": rate, "steps": steps, "delta": delta, "relation": relation}
    sigma = subsampled.sigma_from_epsilon(epsilon=epsilon, **setting)
    assert subsampled.epsilon(noise_multiplier=sigma, **setting).epsilon <= epsilon
    assert subsampled.epsilon(noise_multiplier=sigma * (1 - 3e-5), **setting).epsilon > epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "rate", "steps"),
    [(800.0, 1e-5, 0.1, 100), (701.0, 1e-5, 0.9, 3), (2.0, 1e-12, 0.02, 1000), (2.0, 1.5e-12, 0.02, 300)],
)
def test_the_noise_is_the_smallest_where_distributions_near_their_end(
    epsilon: float, delta: float, rate: float, steps: int
) -> None:
    setting = {"delta": delta, "sampling_rate": rate, "steps": steps}
    sigma = subsampled.sigma_from_epsilon(epsilon=epsilon, **setting)
    assert subsampled.epsilon(noise_multiplier=sigma, **setting).epsilon <= epsilon
    assert subsampled.epsilon(noise_multiplier=sigma * (1 - 1e-4), **setting).epsilon > epsilon


def test_the_noise_of_dp_accounting_is_reached() -> None:
    # calibrate_dp_mechanism with PLDAccountant of dp-accounting 0.6.0, grid 1e-4
    found = subsampled.sigma_from_epsilon(epsilon=1.0, delta=1e-5, sampling_rate=0.01, steps=1000)
    assert found == pytest.approx(1.414630993754017, rel=1e-5)


def test_without_sampling_the_noise_is_exact() -> None:
    found = subsampled.sigma_from_epsilon(
        epsilon=1.0, delta=1e-5, sampling_rate=1.0, steps=50, relation=REPLACE
    )
    assert found == 2 * gaussian.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=50)


def test_a_record_that_is_hardly_ever_used_needs_no_noise() -> None:
    with pytest.raises(ValueError, match="no noise is needed; give a smaller delta"):
        subsampled.sigma_from_epsilon(epsilon=1.0, delta=1e-5, sampling_rate=1e-8, steps=900)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.2), (0.4, 0.02), (3.0, 0.7)])
def test_the_ceiling_of_one_step_lies_just_above_the_best_test_of_it(sigma: float, rate: float) -> None:
    normal = NormalDist()
    ceiling = subsampled.curve(noise_multiplier=sigma, sampling_rate=rate, steps=1)
    for threshold in (-1.0, 0.0, 0.5, 1.0, 2.0, 3.0):
        # says "member" above a threshold: the likelihood ratio grows with the outcome
        fpr = normal.cdf(-threshold)
        tpr = (1 - rate) * fpr + rate * normal.cdf(1 / sigma - threshold)
        assert ceiling.tpr(fpr) >= tpr - 1e-12
        assert ceiling.tpr(1 - tpr) >= 1 - fpr - 1e-12  # the other direction
        assert ceiling.tpr(fpr) <= GaussianCurve(mu=1 / sigma).tpr(fpr) + 1e-12
    variation = rate * (2 * normal.cdf(0.5 / sigma) - 1)
    assert ceiling.advantage == pytest.approx(variation, rel=1e-3)


def test_the_ceiling_of_many_steps_nears_the_central_limit() -> None:
    sigma, rate, steps = 2.0, 0.003, 300_000
    limit = GaussianCurve(mu=rate * math.sqrt(steps * math.expm1(1 / sigma**2)))
    ceiling = subsampled.curve(noise_multiplier=sigma, sampling_rate=rate, steps=steps)
    for fpr in (1e-3, 0.01, 0.1, 0.5, 0.9):
        assert ceiling.tpr(fpr) == pytest.approx(limit.tpr(fpr), rel=0.01)
    assert ceiling.auc == pytest.approx(limit.auc, rel=2e-3)


def test_the_ceiling_without_sampling_is_the_gaussian_curve() -> None:
    ceiling = subsampled.curve(noise_multiplier=2.0, sampling_rate=1.0, steps=9, relation=REPLACE)
    assert ceiling == GaussianCurve(mu=3.0)


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1e5])
@pytest.mark.parametrize("rate", [1e-300, 1e-4, 0.9])
@pytest.mark.parametrize("steps", [1, 10**6])
def test_the_ceiling_of_extremes_is_one(sigma: float, rate: float, steps: int) -> None:
    ceiling = subsampled.curve(noise_multiplier=sigma, sampling_rate=rate, steps=steps)
    rates = [ceiling.tpr(fpr) for fpr in (0.0, 1e-9, 1e-3, 0.5, 1.0)]
    assert rates == sorted(rates)
    assert rates[-1] == 1.0
    assert 0.5 <= ceiling.auc <= 1.0
    assert 0.0 <= ceiling.advantage <= 1.0
