import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from accountant import gaussian
from accountant.normal import cdf
from accountant.target import (
    AbstractTarget,
    Advantage,
    Auc,
    EpsilonDelta,
    Mu,
    TprAtFpr,
    rounds_for,
    sigma_for,
)
from accountant.tradeoff import GaussianCurve
from tests.exact import log_delta

DIGITS = 60


def reached(target: AbstractTarget, mu: Any) -> tuple[Any, Any]:
    """What mu-GDP reaches in the target's own unit, and the target, to 60 digits."""
    match target:
        case EpsilonDelta(epsilon=epsilon, delta=delta):
            return log_delta(epsilon, mu), mp.log(mp.mpf(delta))
        case Mu(largest=largest):
            return mu, mp.mpf(largest)
        case Advantage(advantage=advantage):
            return mp.erf(mu / mp.sqrt(8)), mp.mpf(advantage)
        case Auc(auc=auc):
            return mp.ncdf(mu / mp.sqrt(2)), mp.mpf(auc)
        case TprAtFpr(tpr=tpr, fpr=fpr):
            return mp.ncdf(_quantile(fpr) + mu), mp.mpf(tpr)
    raise AssertionError(target)


def _quantile(p: float) -> Any:
    start = -math.sqrt(-2 * math.log(min(p, 1 - p))) if p < 0.4 else (0.0 if p < 0.6 else 4.0)
    log = mp.log(mp.mpf(min(p, 1 - p)))
    found = mp.findroot(lambda x: mp.log(mp.ncdf(x)) - log, -abs(start))
    return found if p <= 0.5 else -found


@pytest.mark.parametrize(
    ("target", "mu"),
    [
        (EpsilonDelta(epsilon=1.0, delta=1e-5), 0.268051123),
        (Mu(largest=0.5), 0.5),
        (Advantage(advantage=0.1066), 0.26805),
        (Auc(auc=0.5752), 0.26805),
        (TprAtFpr(tpr=0.01978, fpr=0.01), 0.26805),
        (Advantage(advantage=math.erf(1 / math.sqrt(8))), 1.0),
        (Auc(auc=cdf(1 / math.sqrt(2))), 1.0),
        (TprAtFpr(tpr=cdf(-1.0), fpr=cdf(-2.0)), 1.0),
    ],
)
def test_the_largest_mu_agrees_with_published_and_inverted_values(target: AbstractTarget, mu: float) -> None:
    assert target.mu == pytest.approx(mu, rel=1e-9 if mu in (0.268051123, 0.5, 1.0) else 1e-3)


units = st.one_of(st.floats(1e-12, 0.999), st.floats(-12.0, -3.0).map(lambda power: 1 - 10.0**power))
targets = st.one_of(
    st.builds(
        EpsilonDelta,
        epsilon=st.floats(-4.0, 3.0).map(lambda power: 10.0**power),
        delta=st.floats(-60.0, -0.1).map(lambda power: 10.0**power),
    ),
    st.builds(Mu, largest=st.floats(1e-9, 1e6)),
    st.builds(Advantage, advantage=st.one_of(units, st.floats(-300.0, -1.0).map(lambda power: 10.0**power))),
    st.builds(Auc, auc=st.floats(-12.0, -0.31).map(lambda power: 0.5 + 10.0**power)),
    st.tuples(units, units)
    .map(sorted)
    .filter(lambda pair: pair[1] - pair[0] > 1e-6 * pair[1])
    .map(lambda pair: TprAtFpr(fpr=pair[0], tpr=pair[1])),
)


@settings(max_examples=150, deadline=None)
@given(targets, st.integers(1, 10**6))
def test_noise_never_gives_more_than_the_target_and_hardly_less(target: AbstractTarget, rounds: int) -> None:
    sigma = sigma_for(target, rounds=rounds)
    with mp.workdps(DIGITS):
        mu = mp.sqrt(rounds) / mp.mpf(sigma)
        found, wanted = reached(target, mu)
        assert found <= wanted
        close = 1e-9 if isinstance(target, TprAtFpr) else 1e-12
        over, _ = reached(target, mu * (1 + close))
        assert over > wanted


EXTREMES = [
    Advantage(advantage=1e-6),
    Advantage(advantage=1e-300),
    Advantage(advantage=1 - 1e-15),
    Auc(auc=0.5 + 1e-15),
    Auc(auc=1 - 1e-15),
    TprAtFpr(tpr=0.999999, fpr=1e-6),
    TprAtFpr(tpr=1e-250, fpr=1e-300),
    TprAtFpr(tpr=1 - 1e-15, fpr=1e-15),
    EpsilonDelta(epsilon=1e-4, delta=1e-300),
    EpsilonDelta(epsilon=1e5, delta=0.99),
]


@pytest.mark.parametrize("target", EXTREMES)
def test_extreme_targets_are_met_to_the_last_digits(target: AbstractTarget) -> None:
    with mp.workdps(700):  # nothing cancels then
        mu = 1 / mp.mpf(sigma_for(target, rounds=1))
        found, wanted = reached(target, mu)
        assert found <= wanted
        assert reached(target, mu * (1 + mp.mpf(10) ** -11))[0] > wanted


@settings(max_examples=100, deadline=None)
@given(targets)
def test_the_ceiling_on_an_audit_page_stays_within_the_target(target: AbstractTarget) -> None:
    curve = GaussianCurve(mu=target.mu)
    ceiling, wanted = {
        Advantage: lambda t: (curve.advantage, t.advantage),
        Auc: lambda t: (curve.auc, t.auc),
        TprAtFpr: lambda t: (curve.tpr(t.fpr), t.tpr),
        EpsilonDelta: lambda t: (gaussian.epsilon_from_mu(mu=curve.mu, delta=t.delta), t.epsilon),
        Mu: lambda t: (curve.mu, t.largest),
    }[type(target)](target)
    assert ceiling <= wanted * (1 + 3e-16)


@settings(max_examples=100, deadline=None)
@given(targets, st.floats(-3.0, 3.0).map(lambda power: 10.0**power))
def test_rounds_are_the_largest_number_that_is_met(target: AbstractTarget, about: float) -> None:
    sigma = math.sqrt(about * 10) / target.mu
    assume(0 < sigma < math.inf and not 1 - 1e-12 < about * 10 < 1)
    if about * 10 < 1:
        with pytest.raises(ValueError, match="does not keep the target even once; one release needs"):
            rounds_for(target, sigma=sigma)
        return
    rounds = rounds_for(target, sigma=sigma)
    with mp.workdps(DIGITS):
        found, wanted = reached(target, mp.sqrt(rounds) / mp.mpf(sigma))
        assert found <= wanted + 1e-13 * abs(wanted)
        assert reached(target, mp.sqrt(rounds + 1) / mp.mpf(sigma))[0] > wanted


@settings(max_examples=60, deadline=None)
@given(targets, st.integers(1, 10**7))
def test_rounds_and_noise_invert_each_other(target: AbstractTarget, rounds: int) -> None:
    sigma = sigma_for(target, rounds=rounds)
    assert rounds_for(target, sigma=sigma) == rounds


def test_rounds_of_exactly_calibrated_noise_are_recovered() -> None:
    for rounds in (1, 2, 50, 12_345):
        sigma = gaussian.sigma_from_epsilon(epsilon=1.0, delta=1e-5, rounds=rounds)
        assert rounds_for(EpsilonDelta(epsilon=1.0, delta=1e-5), sigma=sigma) == rounds
    assert rounds_for(Mu(largest=0.1), sigma=10.0) == 1


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from((Advantage, Auc, Mu)), st.floats(0.51, 0.98), st.floats(1e-4, 0.01), st.integers(1, 99)
)
def test_a_looser_target_or_fewer_rounds_need_less_noise(
    kind: Callable[..., AbstractTarget], value: float, more: float, rounds: int
) -> None:
    name = {Advantage: "advantage", Auc: "auc", Mu: "largest"}[kind]
    tight, loose = kind(**{name: value}), kind(**{name: value + more})
    assert sigma_for(loose, rounds=rounds) < sigma_for(tight, rounds=rounds)
    assert sigma_for(tight, rounds=rounds) < sigma_for(tight, rounds=rounds + 1)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Advantage(advantage=1.0), "advantage=1.0 must lie strictly between 0 and 1."),
        (lambda: Advantage(advantage=math.nan), "advantage is NaN; give a number."),
        (lambda: Auc(auc=0.5), "auc=0.5 must be above 0.5, which a guess reaches."),
        (lambda: TprAtFpr(tpr=0.01, fpr=0.01), "tpr=0.01 must be above fpr=0.01, which a guess reaches."),
        (lambda: TprAtFpr(tpr=0.5, fpr=0.0), "fpr=0.0 must lie strictly between 0 and 1."),
        (lambda: Mu(largest=0.0), "mu=0.0 must be finite and above 0."),
        (lambda: EpsilonDelta(epsilon=-1.0, delta=1e-5), "epsilon=-1.0 must be finite and above 0."),
        (lambda: sigma_for(Mu(largest=1.0), rounds=0), "rounds=0 must be a whole number of at least 1."),
        (lambda: rounds_for(Mu(largest=1.0), sigma=-1.0), "sigma=-1.0 must be finite and above 0."),
        (
            lambda: rounds_for(Mu(largest=1.0), sigma=0.5),
            "sigma=0.5 does not keep the target even once; one release needs 1.00001.",
        ),
        (
            lambda: rounds_for(Mu(largest=1.0), sigma=1e9),
            "sigma=1e+09 keeps the target for more than 2^53 rounds; give less noise.",
        ),
    ],
)
def test_impossible_targets_are_refused_in_one_sentence(
    made: Callable[[], AbstractTarget | float], sentence: str
) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        made()
    assert str(refused.value) == sentence


def test_a_target_that_rounding_cannot_tell_from_a_guess_is_refused() -> None:
    target = TprAtFpr(tpr=math.nextafter(0.01, 1.0), fpr=0.01)
    with pytest.raises(ValueError, match="leaves nothing above what a guess reaches; raise it"):
        sigma_for(target, rounds=1)
