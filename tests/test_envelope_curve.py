import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import gaussian
from accountant.envelope_curve import EnvelopeCurve
from accountant.tradeoff import ApproximateCurve, GaussianCurve

rates = st.floats(0.0, 1.0)
promises = st.lists(st.tuples(st.floats(0.0, 20.0), rates), min_size=1, max_size=6).map(tuple)
envelopes = st.builds(EnvelopeCurve, guarantees=promises, mu=st.none() | st.floats(0.0, 8.0))
GRID = np.unique(np.concatenate([np.linspace(0, 1, 301), np.geomspace(1e-9, 0.1, 80)]))


def of_gaussian(mu: float, count: int) -> EnvelopeCurve:
    """Pairs that mu-GDP keeps exactly."""
    epsilons = np.linspace(0.0, mu * (mu / 2 + 6), count).tolist()
    pairs = tuple((eps, gaussian.delta_from_mu(epsilon=eps, mu=mu)) for eps in epsilons)
    return EnvelopeCurve(guarantees=pairs)


@settings(max_examples=60)
@given(envelopes, rates, rates)
def test_it_lies_above_chance_never_falls_and_is_concave(curve: EnvelopeCurve, a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert curve.tpr(low) <= curve.tpr(high) * (1 + 1e-9)
    assert low * (1 - 1e-9) - 1e-300 <= curve.tpr(low) <= 1
    assert curve.tpr((low + high) / 2) >= (curve.tpr(low) + curve.tpr(high)) / 2 - 1e-9
    assert curve.tpr(low) - low <= curve.advantage + 1e-9
    assert 0.5 - 1e-12 <= curve.auc <= 1


@settings(max_examples=40, deadline=None)
@given(envelopes)
def test_area_and_advantage_are_those_of_its_points(curve: EnvelopeCurve) -> None:
    tpr = np.array([curve.tpr(float(a)) for a in GRID])
    below = float(np.trapezoid(tpr, GRID))  # chords of a concave curve lie below it
    assert below - 1e-12 <= curve.auc <= below + 2e-3
    assert (tpr - GRID).max() - 1e-12 <= curve.advantage <= (tpr - GRID).max() + 4e-3


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 4.0])
def test_pairs_of_the_gaussian_lie_above_its_curve_and_many_on_it(mu: float) -> None:
    exact, few, many = GaussianCurve(mu=mu), of_gaussian(mu, 4), of_gaussian(mu, 300)
    for fpr in GRID.tolist():
        assert exact.tpr(fpr) <= many.tpr(fpr) + 1e-12
        assert many.tpr(fpr) <= exact.tpr(fpr) + 1e-3
        assert exact.tpr(fpr) <= few.tpr(fpr) + 1e-12
    assert exact.auc <= many.auc <= exact.auc + 1e-4
    assert many.auc < few.auc
    assert exact.advantage == pytest.approx(many.advantage, rel=1e-9)  # epsilon 0 is among the pairs


def test_one_promise_is_its_own_ceiling() -> None:
    curve, envelope = ApproximateCurve(epsilon=1.0, delta=0.01), EnvelopeCurve(guarantees=((1.0, 0.01),))
    assert envelope.auc == pytest.approx(curve.auc, abs=1e-12)
    assert envelope.advantage == curve.advantage
    for fpr in GRID.tolist():
        assert envelope.tpr(fpr) == pytest.approx(curve.tpr(fpr), rel=1e-14)
    normal = EnvelopeCurve(guarantees=(), mu=0.7)
    assert normal.auc == pytest.approx(GaussianCurve(mu=0.7).auc, abs=1e-12)


def test_what_promises_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="promise nothing; give one, or use NoPromise"):
        EnvelopeCurve(guarantees=())
    with pytest.raises(ValueError, match=r"delta=1\.5 must"):
        EnvelopeCurve(guarantees=((1.0, 1.5),))
    with pytest.raises(ValueError, match="mu is NaN"):
        EnvelopeCurve(guarantees=((1.0, 0.1),), mu=math.nan)
