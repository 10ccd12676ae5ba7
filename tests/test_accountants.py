"""What accountants answer at the ends of their ranges, and numbers that other methods gave."""

import itertools
import json
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import bounded_range, gaussian, joint, zcdp
from accountant.accountants import answers, gaussian_mu_of, smallest
from accountant.bound import Bound
from accountant.claims import claim, curve
from accountant.contract import Contract, Query, Relation
from accountant.cost import leaf_cost, total
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    ClipSet,
    Composed,
    Event,
    ExponentialTopK,
    Gaussian,
    GaussianTopK,
    GroupGaussian,
    GumbelTopK,
    LaplaceTopK,
    Leaf,
    NonPrivate,
    PureDP,
    Repeated,
    SubsampledGaussian,
    UnsupportedEventError,
    from_dict,
    merged,
    to_dict,
)
from accountant.relations import restated
from accountant.renyi import epsilon_from_event
from tests import exact

NAN, INF = math.nan, math.inf


def composed(*parts: Event, rounds: int = 1) -> Event:
    return Repeated(event=Composed(events=parts), count=rounds)


def top_k(kind: type, scale: float, *, k: int = 3, dim: int = 9, monotone: bool = False) -> Any:
    return kind(k=k, dim=dim, score_bound=1.0, scale=scale, monotone=monotone)


# ---- what a number means -------------------------------------------------------------------------------------


def test_a_selection_costs_what_its_noise_allows() -> None:
    assert top_k(LaplaceTopK, 10.0, k=8).epsilon == pytest.approx(2 * 1 / 10)  # d - k outside
    assert top_k(LaplaceTopK, 10.0, k=4).epsilon == pytest.approx(2 * 4 / 10)
    assert top_k(ExponentialTopK, 10.0, k=8).epsilon == pytest.approx(2 * 8 / 10)  # no such bound
    for kind in (LaplaceTopK, ExponentialTopK):
        assert top_k(kind, 10.0, monotone=True).epsilon == pytest.approx(top_k(kind, 10.0).epsilon / 2)
    assert top_k(GumbelTopK, 10.0, monotone=True).eta == pytest.approx(top_k(GumbelTopK, 10.0).eta / 2)
    assert top_k(GaussianTopK, 10.0).mu == pytest.approx(math.sqrt(9) / 10)
    assert top_k(GaussianTopK, 10.0, monotone=True).mu == top_k(GaussianTopK, 10.0).mu


@given(
    st.lists(st.floats(0.1, 10.0), min_size=2, max_size=4),
    st.lists(st.floats(0.1, 10.0), min_size=4, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_no_record_inside_a_clip_set_moves_groups_further_than_mu(
    sigmas: list[float], radii: list[float], seed: int
) -> None:
    # Two records z and -z inside the set; noise per group is sigma_g times the largest move of that group alone.
    axes = np.array(radii[: len(sigmas)])
    directions = np.abs(np.random.default_rng(seed).standard_normal((400, len(sigmas))))
    directions = np.concatenate([directions, np.eye(len(sigmas)), np.ones((1, len(sigmas)))])
    for clip in (ClipSet.GROUPWISE, ClipSet.ELLIPSOID):
        inside = axes * directions
        if clip is ClipSet.GROUPWISE:
            inside /= np.abs(directions).max(axis=1, keepdims=True)
        else:
            inside /= np.linalg.norm(directions, axis=1, keepdims=True)
        moved = np.linalg.norm(2 * inside / (np.array(sigmas) * 2 * axes), axis=1)
        mu = leaf_cost(GroupGaussian(noise_multipliers=tuple(sigmas), clip=clip)).mu
        assert moved.max() <= mu * (1 + 1e-12)
        assert moved.max() == pytest.approx(mu, rel=1e-12)
    ball = leaf_cost(GroupGaussian(noise_multipliers=tuple(sigmas), clip=ClipSet.GLOBAL)).mu
    assert ball == 1 / min(sigmas)


def test_one_ball_with_group_noise_costs_what_the_analysis_says() -> None:
    # rho = .1: groupwise noise has equal weights w = 1/2 on radii R sqrt(.1) and R sqrt(.9), at mu(eps = 1).
    mu = gaussian.mu_from_epsilon(epsilon=1.0, delta=1e-5)
    factor = math.sqrt(0.75) / math.sqrt(0.1)  # sqrt(w_A) / kappa_A
    assert factor == pytest.approx(2.7386, rel=1e-4)
    sigma_A, sigma_B = math.sqrt(1 / 0.75) / mu, math.sqrt(1 / 0.25) / mu
    groups = GroupGaussian(noise_multipliers=(sigma_A, sigma_B))
    assert claim(groups, delta=1e-5).epsilon == pytest.approx(1.0, rel=1e-12)
    in_one_ball = (sigma_A * math.sqrt(0.1), sigma_B * math.sqrt(0.9))
    ball = GroupGaussian(noise_multipliers=in_one_ball, clip_norms=(1.0, 1.0), clip=ClipSet.GLOBAL)
    assert claim(ball, delta=1e-5).epsilon == pytest.approx(3.071, abs=1e-3)


@pytest.mark.parametrize("shift", [1e-3, 0.1, 1.0, 3.0, 20.0])
def test_laplace_noise_is_gaussian_dp_at_every_error_rate(shift: float) -> None:
    # Trade-off curve of Laplace noise (Dong, Roth and Su 2022, Appendix A), beta as a function of alpha.
    mu = gaussian.mu_from_laplace(shift=shift)
    with mp.workdps(40):
        for alpha in [*np.geomspace(1e-12, 0.5, 60), *(1 - np.geomspace(1e-12, 0.5, 60))]:
            a, low = mp.mpf(float(alpha)), mp.exp(-mp.mpf(shift)) / 2
            if a < low:
                beta = 1 - mp.exp(shift) * a
            elif a <= mp.mpf(1) / 2:
                beta = mp.exp(-mp.mpf(shift)) / (4 * a)
            else:
                beta = mp.exp(-mp.mpf(shift)) * (1 - a)
            bound = mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * a - 1) - mu)
            assert beta >= bound - mp.mpf(10) ** -13
        middle = mp.exp(-mp.mpf(shift) / 2) / 2
        assert float(mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * middle - 1) - mu) / middle) == pytest.approx(1.0)


@pytest.mark.parametrize("eta", [1e-3, 0.1, 1.0, 4.0, 20.0])
def test_two_outcomes_of_bounded_range_are_gaussian_dp_whatever_the_pair(eta: float) -> None:
    # Outcomes of log-ratio t and t - eta; the corner of their trade-off curve against G_mu.
    mu = bounded_range.mu(eta=eta)
    gaps = []
    for t in np.linspace(0, eta, 41)[1:-1]:
        with mp.workdps(40):
            q = (1 - mp.exp(t - eta)) / (mp.exp(t) - mp.exp(t - eta))
            beta = 1 - mp.exp(t) * q
            bound = mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * q - 1) - mu)
            gaps.append(float((beta - bound) / beta))
    assert min(gaps) >= -1e-12
    assert min(gaps) == pytest.approx(0.0, abs=1e-11)  # attained in the middle
    assert int(np.argmin(gaps)) == len(gaps) // 2


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 30.0])
def test_randomized_response_is_gaussian_dp_at_its_corner(epsilon: float) -> None:
    with mp.workdps(40):
        corner = 1 / (1 + mp.exp(mp.mpf(epsilon)))
        mu = gaussian.mu_from_pure_epsilon(epsilon=epsilon)
        bound = mp.ncdf(-mp.sqrt(2) * mp.erfinv(2 * corner - 1) - mu)
        assert float(bound / corner) == pytest.approx(1.0, abs=1e-11)


# ---- published and independent numbers ------------------------------------------------------------------------


def test_fifty_two_picks_cost_what_the_analysis_says() -> None:
    picks = Repeated(event=BoundedRange(eta=0.05), count=52)
    found = {answer.method: answer.epsilon for answer in answers(picks, delta=1e-5)}
    assert found["as Gaussian"] == pytest.approx(0.8291, abs=5e-5)
    assert found["Renyi"] == pytest.approx(0.7097, abs=5e-5)
    assert zcdp.epsilon_from_rho(rho=52 * bounded_range.rho(eta=0.05), delta=1e-5) == pytest.approx(
        found["Renyi"], rel=1e-6
    )
    gumbel = GumbelTopK(k=52, dim=512, score_bound=1.0, scale=2 / 0.05)
    assert smallest(gumbel, delta=1e-5).epsilon == pytest.approx(found["Renyi"], rel=1e-9)
    beside = composed(Repeated(event=BoundedRange(eta=0.02), count=52), Gaussian(noise_multiplier=4.0))
    found = {answer.method: answer.epsilon for answer in answers(beside, delta=1e-5)}
    assert found["as Gaussian"] == pytest.approx(0.9909, abs=5e-5)
    assert found["Renyi"] == pytest.approx(1.0573, abs=5e-5)


def test_the_papers_laplace_selection_costs_a_tenth_of_its_share() -> None:
    scale = 2 * 52 / (0.1 * 1.0 / 50)  # lambda at T = 50, eps = 1, r = .1, k = 52 of 512
    selection = Repeated(event=LaplaceTopK(k=52, dim=512, score_bound=1.0, scale=scale), count=50)
    assert scale == pytest.approx(52_000)
    assert smallest(selection, delta=1e-5).epsilon == pytest.approx(0.0093, abs=5e-5)
    assert smallest(selection, delta=1e-5).method == "as Gaussian"


@settings(max_examples=25)
@given(
    st.floats(0.05, 3.0),
    st.integers(1, 6),
    st.floats(0.3, 5.0),
    st.floats(1e-8, 1e-3),
    st.floats(1.01, 100.0),
)
def test_approximate_parts_are_lost_with_their_probability(
    epsilon: float, times: int, sigma: float, delta: float, factor: float
) -> None:
    event = composed(
        ApproximateDP(epsilon=epsilon, delta=delta), Gaussian(noise_multiplier=sigma), rounds=times
    )
    lost = -math.expm1(times * math.log1p(-delta))
    wanted = min(lost * factor, 0.9)
    found = {answer.method: answer.epsilon for answer in answers(event, delta=wanted)}["joint"]
    with mp.workdps(40):
        kept = (1 - mp.mpf(delta)) ** times
        rest = mp.exp(exact.log_delta_joint(found, math.sqrt(times) / sigma, {epsilon: times}))
        reached = 1 - kept * (1 - rest)
    assert float(reached) <= wanted * (1 + 1e-9)
    assert found == 0 or float(reached) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(0.1, 1e-6, 20), (0.5, 1e-5, 5), (1.0, 1e-3, 2)])
def test_approximate_parts_agree_with_dp_accounting(epsilon: float, delta: float, times: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as pld

        one = pld.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=1e-4
        )
        wide = pld.from_gaussian_mechanism(5.0, value_discretization_interval=1e-4)
        want = one.self_compose(times).compose(wide).get_epsilon_for_delta(2 * times * delta)
    event = composed(
        Repeated(event=ApproximateDP(epsilon=epsilon, delta=delta), count=times),
        Gaussian(noise_multiplier=5.0),
    )
    found = smallest(event, delta=2 * times * delta).epsilon
    assert found == pytest.approx(want, abs=2e-4 * times)
    assert found <= want * (1 + 1e-6)


# ---- ends of the ranges ------------------------------------------------------------------------------------------


def test_an_approximate_part_alone_keeps_its_promise_at_its_own_delta() -> None:
    for delta in (1e-300, 1e-5, 0.1):
        found = claim(ApproximateDP(epsilon=1.0, delta=delta), delta=delta)
        assert found.epsilon == pytest.approx(1.0, rel=1e-12)
    assert claim(ApproximateDP(epsilon=1.0, delta=0.1), delta=0.09).epsilon == INF
    beside = composed(ApproximateDP(epsilon=1.0, delta=0.1), Gaussian(noise_multiplier=9.0))
    assert claim(beside, delta=0.1).epsilon == INF
    assert claim(ApproximateDP(epsilon=1.0, delta=0.1), delta=0.0).epsilon == INF


def test_secrets_given_away_for_certain_have_a_ceiling_of_one() -> None:
    ceiling = curve(Repeated(event=ApproximateDP(epsilon=1.0, delta=0.5), count=10**6))
    assert (ceiling.tpr(0.0), ceiling.tpr(0.1), ceiling.auc, ceiling.advantage) == (1.0, 1.0, 1.0, 1.0)


def test_a_very_large_noise_still_costs_something() -> None:
    loud = Repeated(event=Gaussian(noise_multiplier=1e170), count=4)
    assert total(loud).mu == pytest.approx(2e-170)
    assert smallest(loud, delta=1e-5).method == "exact"


def test_many_distinct_selections_are_priced_by_the_smallest_accountant() -> None:
    many = Composed(events=tuple(PureDP(epsilon=1e-4 * (1 + i)) for i in range(100)))
    found = {answer.method: answer.epsilon for answer in answers(many, delta=1e-5)}
    assert set(found) == {"sequential", "as Gaussian", "Renyi"}
    assert smallest(many, delta=1e-5).epsilon == found["Renyi"] == min(found.values())
    ceiling = curve(many)  # no finite sum of manageable size, but still a ceiling
    assert ceiling.auc <= curve(Gaussian(noise_multiplier=1 / gaussian_equivalent(many))).auc * (1 + 1e-12)
    assert 0.01 < ceiling.tpr(0.01) < 1
    assert 0 < ceiling.advantage < 1


def gaussian_equivalent(event: Event) -> float:
    return joint.gaussian_equivalent(dict(total(event).pure))


def test_a_huge_pure_cost_is_not_exceeded_by_the_joint_sum() -> None:
    event = composed(PureDP(epsilon=1e5), Gaussian(noise_multiplier=1e5), rounds=10**6)
    found = {answer.method: answer.epsilon for answer in answers(event, delta=0.999999)}
    assert found["joint"] <= found["sequential"] == pytest.approx(1e11)


def extremes() -> list[Leaf]:
    made: list[Leaf] = []
    for cost in (1e-6, 1e-2, 1.0, 40.0, 1e5):
        made += [PureDP(epsilon=cost), BoundedRange(eta=cost), ApproximateDP(epsilon=cost, delta=1e-310)]
        made += [top_k(kind, 1 / cost) for kind in (LaplaceTopK, ExponentialTopK, GumbelTopK, GaussianTopK)]
    return made


@pytest.mark.parametrize(
    "leaf", extremes(), ids=lambda leaf: f"{type(leaf).__name__}-{leaf_cost(leaf).mu:.1g}"
)
def test_nothing_overflows_or_is_infinite_without_reason(leaf: Leaf) -> None:
    for sigma, rounds, delta in itertools.product(
        (1e-3, 1.0, 1e5), (1, 1000, 10**6), (1e-300, 1e-5, 0.999999)
    ):
        event = composed(Gaussian(noise_multiplier=sigma), leaf, rounds=rounds)
        alone = gaussian.epsilon_from_mu(mu=math.sqrt(rounds) / sigma, delta=delta)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            found = answers(event, delta=delta)
            assert all(alone * (1 - 1e-11) <= answer.epsilon < INF for answer in found)
            ceiling = curve(event)
            for fpr in (0.0, 1e-300, 1e-5, 0.5, 1.0):
                assert fpr <= ceiling.tpr(fpr) * (1 + 1e-12) <= 1 + 1e-12
            assert 0.5 - 1e-12 <= ceiling.auc <= 1
            assert 0 <= ceiling.advantage <= 1


HEAVY: dict[str, Event] = {
    "equal releases, one by one": Composed(
        events=tuple(Gaussian(noise_multiplier=99.0, contract=Contract(clip_norm=1.0)) for _ in range(20_000))
    ),
    "distinct releases": composed(
        *(Gaussian(noise_multiplier=100.0 + i) for i in range(2000)),
        *(PureDP(epsilon=1e-4 * (1 + i)) for i in range(1000)),
        *(BoundedRange(eta=1e-4 * (1 + i)) for i in range(1000)),
    ),
    "two kinds of many responses": composed(
        PureDP(epsilon=0.01), PureDP(epsilon=0.0137), Gaussian(noise_multiplier=50.0), rounds=1900
    ),
    "three kinds of responses": composed(
        PureDP(epsilon=0.003),
        PureDP(epsilon=0.0137),
        PureDP(epsilon=0.02),
        GaussianTopK(k=3, dim=9, score_bound=1.0, scale=20.0),
        rounds=95,
    ),
    "a million rounds of everything": composed(
        Gaussian(noise_multiplier=5e3),
        GroupGaussian(noise_multipliers=(4e3, 9e3)),
        PureDP(epsilon=1e-4),
        BoundedRange(eta=1e-4),
        ApproximateDP(epsilon=1e-4, delta=1e-13),
        top_k(LaplaceTopK, 1e5),
        top_k(GumbelTopK, 1e5),
        top_k(GaussianTopK, 1e5),
        rounds=10**6,
    ),
}


# Types are checked at every call inside the tests; what is measured and what is refused is read outside them.
OUTSIDE = """
import json, sys, time, tracemalloc
from accountant.accountants import smallest
from accountant.events import from_dict
from tests.test_accountants import HEAVY, READ_BACK, RECORDED

def heavy():
    for name, event in HEAVY.items():
        begun = time.process_time()
        found = smallest(event, delta=1e-5)
        spent = time.process_time() - begun
        tracemalloc.start()  # a child's resident set counts what its parent held when it was started
        smallest(event, delta=1e-5)
        yield name, found.epsilon, spent, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

def refused():
    for plain in READ_BACK:
        try:
            from_dict(plain)
        except ValueError as error:
            yield str(error)
        else:
            yield ""

def recorded():
    yield from map(repr, (from_dict(plain).count for plain in RECORDED))

print(json.dumps(list(globals()[sys.argv[1]]())))
"""


def outside(what: str) -> list[Any]:
    """Return what a Python without type checks prints."""
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", OUTSIDE, what]
    root = Path(__file__).parent.parent
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_large_accounts_neither_hang_nor_fill_the_memory() -> None:
    for name, epsilon, seconds, memory in outside("heavy"):
        assert 0 < epsilon < INF, name
        assert seconds < 60, name  # about 1 s on an idle machine: this catches a hang, not slowness
        assert memory < 500e6, name


def test_pld_that_cannot_tell_is_left_out() -> None:
    contract = Contract(relation=Relation.ADD_REMOVE)
    step = SubsampledGaussian(noise_multiplier=0.01, sampling_rate=0.01, contract=contract)
    found = answers(Repeated(event=step, count=5), delta=1e-5)
    assert all(answer.epsilon < INF for answer in found)
    assert "PLD" not in {answer.method for answer in found}


@pytest.mark.parametrize("delta", [1e-300, 1e-30, 1e-5, 0.5])
def test_outcomes_too_rare_for_delta_change_no_digit(delta: float) -> None:
    pure = {0.02: 900, 1.5: 12}
    found = joint.epsilon(delta=delta, mu=0.3, pure=pure)
    log_delta = joint.log_delta(epsilon=found, mu=0.3, pure=pure)  # with all outcomes that a float can hold
    assert log_delta == pytest.approx(math.log(delta), rel=1e-10, abs=1e-10)
    assert log_delta <= math.log(delta) + 1e-13


def test_merging_counts_each_distinct_leaf_once() -> None:
    part = PureDP(epsilon=0.5)
    found = merged(Composed(events=(part, Repeated(event=part, count=3), NonPrivate())))
    assert found == Composed(events=(Repeated(event=part, count=4), Repeated(event=NonPrivate(), count=1)))


def test_scores_that_rise_when_a_record_is_added_do_not_rise_when_it_is_replaced() -> None:
    added = LaplaceTopK(
        k=1, dim=3, score_bound=1.0, scale=9.0, monotone=True, contract=Contract(relation=Relation.ADD_REMOVE)
    )
    replaced = restated(added, Relation.REPLACE_SAME_LABEL)
    assert isinstance(replaced, LaplaceTopK)
    assert replaced.epsilon == 2 * added.epsilon
    assert restated(added, Relation.ADD_REMOVE) is added


# ---- bad input -----------------------------------------------------------------------------------------------------

REFUSED: dict[str, Any] = {
    **{f"sigma {bad}": lambda bad=bad: Gaussian(noise_multiplier=bad) for bad in (NAN, INF, -INF, 0.0, -1.0)},
    **{
        f"group sigma {bad}": lambda bad=bad: GroupGaussian(noise_multipliers=(1.0, bad))
        for bad in (NAN, 0.0)
    },
    **{f"epsilon {bad}": lambda bad=bad: PureDP(epsilon=bad) for bad in (NAN, INF, 0.0, -1.0)},
    **{f"eta {bad}": lambda bad=bad: BoundedRange(eta=bad) for bad in (NAN, INF, 0.0)},
    **{f"delta {bad}": lambda bad=bad: ApproximateDP(epsilon=1.0, delta=bad) for bad in (NAN, 0.0, 1.0, 2.0)},
    **{f"scale {bad}": lambda bad=bad: top_k(LaplaceTopK, bad) for bad in (NAN, INF, 0.0)},
    **{f"k {bad}": lambda bad=bad: top_k(LaplaceTopK, 1.0, k=bad) for bad in (0, 9, 10, 2**60)},
    **{
        f"rate {bad}": lambda bad=bad: SubsampledGaussian(noise_multiplier=1.0, sampling_rate=bad)
        for bad in (NAN, 0.0, 1.5)
    },
    **{f"count {bad}": lambda bad=bad: Repeated(event=NonPrivate(), count=bad) for bad in (0, -1, 2**60)},
    "one ball, unequal radii": lambda: GroupGaussian(
        noise_multipliers=(1.0, 1.0), clip_norms=(1.0, 2.0), clip=ClipSet.GLOBAL
    ),
    "sizes of other groups": lambda: GroupGaussian(noise_multipliers=(1.0,), sizes=(1, 2)),
    "nested counts": lambda: total(
        Repeated(event=Repeated(event=PureDP(epsilon=1.0), count=2**40), count=2**40)
    ),
    "added counts": lambda: total(composed(*(Repeated(event=NonPrivate(), count=2**53),) * 2)),
    **{f"claim at {bad}": lambda bad=bad: claim(PureDP(epsilon=1.0), delta=bad) for bad in (NAN, -0.1, 1.0)},
    "delta 0 next to Gaussian noise": lambda: claim(Gaussian(noise_multiplier=1.0), delta=0.0),
}
READ_BACK: list[dict[str, Any]] = [
    {},
    {"event": ["PureDP"]},
    {"event": "Leaf"},
    {"event": "TopK", "k": 1, "dim": 3, "score_bound": 1.0, "scale": 1.0},
    {"event": "PureDP", "epsilon": "1"},
    {"event": "PureDP", "epsilon": True},
    {"event": "PureDP", "epsilon": NAN},
    {"event": "PureDP", "epsilon": 1.0, "colour": "red"},
    {"event": "PureDP", "epsilon": 1.0, "contract": None},
    {"event": "PureDP", "epsilon": 1.0, "contract": "public"},
    {"event": "GroupGaussian", "noise_multipliers": []},
    {"event": "GroupGaussian", "noise_multipliers": [[1.0]]},
    {"event": "GroupGaussian", "noise_multipliers": [1.0], "clip": "blob"},
    {"event": "LaplaceTopK", "k": 1, "dim": 3, "score_bound": 1.0, "scale": 1.0, "monotone": "yes"},
    {"event": "Repeated", "count": 2},
    {"event": "Repeated", "count": 1.5, "inner": {"event": "NonPrivate"}},
    {"event": "Repeated", "count": 2, "inner": None},
    {"event": "Composed"},
    {"event": "Composed", "events": {"event": "NonPrivate"}},
    {"event": "Composed", "events": 5},
    {"event": "Composed", "events": [5]},
]


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_value_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+[^.]\.$"):
        REFUSED[name]()


def test_a_bad_record_is_refused_in_one_sentence() -> None:
    words = outside("refused")
    assert len(words) == len(READ_BACK)
    for plain, found in zip(READ_BACK, words, strict=True):
        assert re.fullmatch(r"[^\n]+[^.][.?]", found), plain


def test_an_event_inside_that_is_none_is_not_written_down() -> None:
    class Other(Event):
        """No event of ours."""

    for wrong in (Repeated(event=Other(), count=2), Composed(events=(Other(),))):
        with pytest.raises(UnsupportedEventError, match="is not an event that can be written down"):
            to_dict(wrong)


RECORDED: list[dict[str, Any]] = [
    {"event": "Repeated", "count": 2.0, "inner": {"event": "NonPrivate"}},
    {"event": "Repeated", "count": 2, "inner": {"event": "NonPrivate"}},
]


def test_a_whole_float_is_read_as_a_count() -> None:
    assert outside("recorded") == ["2", "2"]


def test_lists_are_read_as_tuples() -> None:
    plain = {
        "event": "GroupGaussian",
        "noise_multipliers": [1.0, 2.0],
        "sizes": [3, 4],
        "clip_norms": [1.0, 1.0],
    }
    assert from_dict(plain | {"clip": "one ball"}) == GroupGaussian(
        noise_multipliers=(1.0, 2.0), sizes=(3, 4), clip_norms=(1.0, 1.0), clip=ClipSet.GLOBAL
    )


def test_an_empty_composition_costs_nothing_to_anyone() -> None:
    for empty in (Composed(events=()), composed(Composed(events=()), rounds=2**53)):
        (found,) = answers(empty, delta=0.0)
        assert (found.epsilon, found.method, found.bound) == (0.0, "nothing ran", Bound.EXACT)
        assert epsilon_from_event(empty, delta=1e-5) == 0.0


def test_the_mu_of_a_leaf_takes_the_better_of_two_views() -> None:
    narrow, wide = top_k(LaplaceTopK, 10.0, k=1, dim=900), top_k(LaplaceTopK, 10.0, k=400, dim=900)
    assert gaussian_mu_of(narrow) == gaussian.mu_from_pure_epsilon(epsilon=narrow.epsilon)
    assert gaussian_mu_of(wide) == 30 * gaussian.mu_from_laplace(shift=0.1)


def test_a_query_is_kept_when_an_event_is_written_down() -> None:
    event = Gaussian(noise_multiplier=2.0, contract=Contract(query=Query.CLASS_SUMS, class_counts=(3, 4)))
    assert from_dict(to_dict(event)) == event
