import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import gaussian, subsampled_pld
from accountant.contract import Relation
from accountant.subsampled_pair import cells, pairs

REPLACE = Relation.REPLACE_ANY_LABEL
SETTINGS = [(0.8, 0.01, 1000, 1e-4), (3.0, 0.1, 100, 1e-4), (1.37, 0.001, 20_000, 1e-5), (1.0, 0.3, 1, 1e-4)]


@pytest.mark.parametrize(("sigma", "rate", "steps", "grid"), SETTINGS)
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, REPLACE])
def test_dp_accounting_agrees(sigma: float, rate: float, steps: int, grid: float, relation: Relation) -> None:
    dp = pytest.importorskip("dp_accounting")
    distribution = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    neighbours = dp.NeighboringRelation.ADD_OR_REMOVE_ONE
    if relation is REPLACE:
        neighbours = dp.NeighboringRelation.REPLACE_ONE
    theirs = distribution.from_gaussian_mechanism(
        sigma, sampling_prob=rate, neighboring_relation=neighbours, value_discretization_interval=grid
    ).self_compose(steps)
    found = subsampled_pld.epsilon(
        noise_multiplier=sigma, sampling_rate=rate, steps=steps, delta=1e-5, relation=relation
    )
    assert found == pytest.approx(theirs.get_epsilon_for_delta(1e-5), rel=3e-5)


@pytest.mark.parametrize(("sigma", "steps"), [(1.0, 1), (10.0, 100), (300.0, 10**6)])
@pytest.mark.parametrize("relation", [Relation.ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("delta", [1e-3, 1e-7])
def test_without_sampling_it_is_just_above_the_exact_value(
    sigma: float, steps: int, relation: Relation, delta: float
) -> None:
    shift = 2 if relation is REPLACE else 1
    want = gaussian.epsilon_from_mu(mu=shift * math.sqrt(steps) / sigma, delta=delta)
    found = subsampled_pld.epsilon(
        noise_multiplier=sigma, sampling_rate=1.0, steps=steps, delta=delta, relation=relation
    )
    assert want <= found <= want * (1 + 2e-4)  # the rounding of a million steps is 2e-10 of delta


@settings(deadline=None, max_examples=25)
@given(st.floats(-3.0, 1.3), st.floats(0.0, 6.0), st.floats(-11.0, -0.5))
def test_rounding_never_promises_too_much(log_mu: float, log_steps: float, log_delta: float) -> None:
    mu, steps, delta = 10**log_mu, int(10**log_steps), 10**log_delta
    found = subsampled_pld.epsilon(
        noise_multiplier=math.sqrt(steps) / mu, sampling_rate=1.0, steps=steps, delta=delta
    )
    assert found >= gaussian.epsilon_from_mu(mu=mu, delta=delta) * (1 - 1e-13)


@settings(deadline=None, max_examples=8)
@given(st.floats(0.3, 5.0), st.floats(1e-4, 0.999), st.floats(0.0, 3.0))
def test_one_step_is_just_above_the_mass_that_exceeds(sigma: float, rate: float, epsilon: float) -> None:
    for relation in (Relation.ADD_REMOVE, REPLACE):
        want = 0.0
        for pair in pairs(noise_multiplier=sigma, sampling_rate=rate, relation=relation):
            edge = pair.outcome(np.array([epsilon]))
            upper, lower = (cells(mixture, edge)[1] for mixture in (pair.upper, pair.lower))
            want = max(want, upper - math.exp(epsilon) * lower)
        composed = subsampled_pld.distributions(
            noise_multiplier=sigma, sampling_rate=rate, steps=1, relation=relation
        )
        found = max(each.delta(epsilon) for each in composed)
        assert want - 1e-14 <= found <= want + 1e-6


@pytest.mark.parametrize("relation", [r for r in Relation if not r.about_clients])
def test_outcome_undoes_loss(relation: Relation) -> None:
    for pair in pairs(noise_multiplier=0.6, sampling_rate=0.02, relation=relation):
        outcomes = np.array([-2.0, 0.1, 3.0])
        losses = np.array([pair.loss(float(outcome)) for outcome in outcomes])
        np.testing.assert_allclose(pair.outcome(losses), outcomes, rtol=1e-9, atol=1e-9)


def test_a_coarser_grid_is_more_careful() -> None:
    setting = {"noise_multiplier": 1.37, "sampling_rate": 0.001, "steps": 100_000}
    fine, coarse = (
        max(each.epsilon(1e-5) for each in subsampled_pld.distributions(**setting, coarser=coarser))
        for coarser in (1, 16)
    )
    assert fine < coarse
    assert fine == pytest.approx(0.9945, abs=3e-4)  # dp-accounting at its own grid: 0.9958


@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1.0, 1e5])
@pytest.mark.parametrize("rate", [1e-300, 1e-8, 0.5, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("steps", [1, 10**6])
def test_extremes_end(sigma: float, rate: float, steps: int) -> None:
    setting = {"noise_multiplier": sigma, "sampling_rate": rate, "steps": steps}
    composed = subsampled_pld.distributions(**setting)
    assert all(len(each.losses) <= 800_001 for each in composed)
    found = [max(each.epsilon(delta) for each in composed) for delta in (1e-9, 1e-5, 0.9)]
    assert found == sorted(found, reverse=True)
    assert all(each >= 0 for each in found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 1e-13}, "drown in rounding"),
        ({"delta": math.nan}, "delta is NaN"),
        ({"steps": 0}, "steps=0 must be a whole number of at least 1"),
        ({"sampling_rate": 0.0}, "never uses a record"),
    ],
)
def test_bad_numbers_are_refused(change: dict, message: str) -> None:
    setting = {"noise_multiplier": 1.0, "sampling_rate": 0.1, "steps": 5, "delta": 1e-5}
    with pytest.raises(ValueError, match=message):
        subsampled_pld.epsilon(**(setting | change))
