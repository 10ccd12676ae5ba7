import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import joint
from accountant.gaussian import delta_from_mu, epsilon_from_mu
from accountant.joint_curve import JointCurve
from accountant.tradeoff import (
    AbstractCurve,
    ApproximateCurve,
    GaussianCurve,
    NoPromise,
    single_release_auc,
    single_release_iid_auc,
)

rates = st.floats(0.0, 1.0)
pures = st.dictionaries(st.floats(0.01, 3.0), st.integers(1, 8), max_size=2).map(lambda d: tuple(d.items()))
curves = st.one_of(
    st.builds(GaussianCurve, mu=st.floats(0.0, 8.0)),
    st.builds(ApproximateCurve, epsilon=st.floats(0.0, 20.0), delta=rates),
    st.builds(JointCurve, mu=st.one_of(st.just(0.0), st.floats(0.01, 3.0)), pure=pures),
    st.just(NoPromise()),
)
GRID = np.unique(np.concatenate([np.linspace(0, 1, 201), np.geomspace(1e-9, 0.1, 60)]))


def measured(curve: AbstractCurve) -> tuple[float, float]:
    """Area and largest TPR - FPR of a curve, from its points alone."""
    tpr = np.array([curve.tpr(float(a)) for a in GRID])
    return float(np.trapezoid(tpr, GRID)), float((tpr - GRID).max())


@settings(max_examples=60)
@given(curves, rates, rates)
def test_a_curve_lies_above_chance_and_never_falls(curve: AbstractCurve, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert curve.tpr(low) <= curve.tpr(high) * (1 + 1e-9)
    assert low * (1 - 1e-9) <= curve.tpr(low) <= 1
    middle = curve.tpr((low + high) / 2)
    assert middle >= (curve.tpr(low) + curve.tpr(high)) / 2 - 1e-9
    assert 0.5 - 1e-12 <= curve.auc <= 1
    assert -1e-12 <= curve.advantage <= 1
    assert curve.tpr(low) - low <= curve.advantage + 1e-9


@pytest.mark.parametrize(
    "curve",
    [
        GaussianCurve(mu=0.0),
        GaussianCurve(mu=0.27),
        GaussianCurve(mu=3.0),
        ApproximateCurve(epsilon=1.0, delta=1e-5),
        ApproximateCurve(epsilon=0.3, delta=0.2),
        JointCurve(mu=0.25, pure=((0.5, 1),)),
        JointCurve(mu=0.8, pure=((0.1, 20), (1.0, 1))),
        JointCurve(mu=0.0, pure=((0.3, 5), (0.2, 2))),
        NoPromise(),
    ],
)
def test_auc_and_advantage_are_those_of_the_curve(curve: AbstractCurve) -> None:
    area, advantage = measured(curve)
    assert curve.auc == pytest.approx(area, abs=1e-4)
    assert curve.advantage == pytest.approx(advantage, abs=2e-3)
    assert curve.advantage >= advantage - 1e-9


@given(st.floats(0.05, 5.0), st.floats(0.0, 10.0), rates)
def test_the_gaussian_curve_is_below_every_approximate_one_it_implies(
    mu: float, epsilon: float, fpr: float
) -> None:
    implied = ApproximateCurve(epsilon=epsilon, delta=delta_from_mu(epsilon=epsilon, mu=mu))
    own = GaussianCurve(mu=mu)
    assert own.tpr(fpr) <= implied.tpr(fpr) + 1e-12
    assert own.auc <= implied.auc + 1e-12
    assert own.advantage <= implied.advantage + 1e-12


@given(st.floats(0.05, 4.0), st.floats(1e-9, 0.5))
def test_the_gaussian_curve_touches_its_epsilon_delta_lines(mu: float, delta: float) -> None:
    epsilon = epsilon_from_mu(mu=mu, delta=delta)
    touch = GaussianCurve(mu=mu)
    fpr = 0.5 * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2))
    if epsilon > 0:
        assert touch.tpr(fpr) == pytest.approx(math.exp(epsilon) * fpr + delta, rel=1e-9)


@settings(max_examples=40)
@given(st.floats(0.05, 2.0), pures, st.floats(0.0, 4.0), st.floats(1e-9, 1.0))
def test_the_joint_curve_is_the_envelope_of_its_lines(
    mu: float, pure: tuple[tuple[float, int], ...], epsilon: float, fpr: float
) -> None:
    line = math.exp(epsilon) * fpr + joint.delta(epsilon=epsilon, mu=mu, pure=dict(pure))
    curve = JointCurve(mu=mu, pure=pure)
    assert curve.tpr(fpr) <= line * (1 + 1e-9)
    assert curve.tpr(fpr) >= GaussianCurve(mu=mu).tpr(fpr) * (1 - 1e-9)
    if not pure:
        assert curve.tpr(fpr) == pytest.approx(GaussianCurve(mu=mu).tpr(fpr), rel=1e-9)


def test_one_response_alone_is_the_curve_of_pure_privacy() -> None:
    response, promise = JointCurve(mu=0.0, pure=((0.7, 1),)), ApproximateCurve(epsilon=0.7, delta=0.0)
    for fpr in GRID:
        assert response.tpr(float(fpr)) == pytest.approx(promise.tpr(float(fpr)), abs=1e-12)
    assert response.auc == pytest.approx(promise.auc, rel=1e-12)
    assert response.advantage == pytest.approx(promise.advantage, rel=1e-12)


def test_many_strong_responses_can_be_told_apart_for_certain() -> None:
    curve = JointCurve(mu=0.1, pure=((1.0, 10_000),))
    assert curve.tpr(0.01) == 1.0
    assert curve.auc == pytest.approx(1.0)
    assert JointCurve(mu=0.0, pure=((1.0, 10_000),)).tpr(1e-6) == pytest.approx(1.0)


def test_ten_thousand_weak_responses_are_nearly_gaussian() -> None:
    curve, limit = JointCurve(mu=0.2, pure=((0.002, 10_000),)), GaussianCurve(mu=math.hypot(0.2, 0.2))
    assert curve.auc == pytest.approx(limit.auc, rel=1e-4)
    assert curve.tpr(0.01) == pytest.approx(limit.tpr(0.01), rel=1e-3)


def test_a_huge_epsilon_neither_overflows_nor_promises() -> None:
    curve = ApproximateCurve(epsilon=1e5, delta=0.0)
    assert (curve.tpr(0.0), curve.tpr(1e-9), curve.auc, curve.advantage) == (0.0, 1.0, 1.0, 1.0)


@given(st.floats(0.0, 5.0))
def test_one_release_bounds_an_auc_tighter_than_two(mu: float) -> None:
    assert single_release_iid_auc(mu=mu) <= single_release_auc(mu=mu) <= GaussianCurve(mu=mu).auc


def test_a_chosen_pair_in_one_release_attains_its_cap() -> None:
    # One record is R or -R; the release is their mean plus noise; members score their own projection.
    mu, rng = 1.3, np.random.default_rng(0)
    member = rng.choice([-1.0, 1.0], 400_000)
    release = mu / 2 * member + rng.normal(size=member.size)
    wins = float((member * release > -member * release).mean())
    assert wins == pytest.approx(single_release_auc(mu=mu), abs=3e-3)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf])
def test_a_rate_outside_the_unit_interval_is_refused(bad: float) -> None:
    for curve in (GaussianCurve(mu=1.0), ApproximateCurve(epsilon=1.0, delta=0.0), NoPromise()):
        with pytest.raises(ValueError, match="fpr"):
            curve.tpr(bad)
    with pytest.raises(ValueError, match="fpr"):
        JointCurve(mu=1.0, pure=()).tpr(bad)


@pytest.mark.parametrize("bad", [math.nan, -0.1, math.inf])
def test_curves_of_impossible_promises_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="mu"):
        GaussianCurve(mu=bad)
    with pytest.raises(ValueError, match="epsilon"):
        ApproximateCurve(epsilon=bad, delta=0.0)
    with pytest.raises(ValueError, match="mu"):
        JointCurve(mu=bad, pure=())
    with pytest.raises(ValueError, match="epsilon"):
        JointCurve(mu=0.0, pure=((bad, 1),))
    with pytest.raises(ValueError, match="names an epsilon twice"):
        JointCurve(mu=0.0, pure=((0.1, 1), (0.1, 2)))
    with pytest.raises(ValueError, match="mu"):
        single_release_auc(mu=bad)
