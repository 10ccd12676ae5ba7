import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accountant import gaussian, joint, sequential
from accountant.accountants import gaussian_mu
from accountant.assumptions import ASSUMPTIONS, broken, in_order, named
from accountant.bound import Bound
from accountant.claims import claim, curve
from accountant.contract import Contract, Counts, DependsOn, Relation
from accountant.events import (
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    GumbelTopK,
    LaplaceTopK,
    Leaf,
    NonPrivate,
    PureDP,
    Repeated,
    UnsupportedEventError,
)
from accountant.joint_curve import JointCurve
from accountant.renyi import epsilon_from_event
from accountant.tradeoff import ApproximateCurve, GaussianCurve, NoPromise

GOOD = Contract(
    clip_norm=1.0,
    encoder=DependsOn.PUBLIC,
    assignment=DependsOn.PUBLIC,
    counts=Counts.PUBLIC,
    hyperparameters=DependsOn.PUBLIC,
    fresh_noise=True,
)
NOISE = Gaussian(noise_multiplier=30.0, contract=GOOD)
SELECTION = PureDP(epsilon=0.01, contract=GOOD)


def rounds(count: int, *parts: Event) -> Event:
    return Repeated(event=Composed(events=parts), count=count)


def test_gaussian_noise_alone_is_exact() -> None:
    found = claim(rounds(50, NOISE), delta=1e-5)
    assert found.epsilon == gaussian.epsilon_from_mu(mu=math.sqrt(50) / 30, delta=1e-5)
    assert (found.method, found.bound, found.releases) == ("exact", Bound.EXACT, 50)
    assert (found.relation, found.unit) == (GOOD.relation, GOOD.unit)
    assert found.covered
    assert found.broken == ()
    assert found.needs == tuple(assumption.id for assumption in ASSUMPTIONS)


def test_group_noise_costs_what_its_equivalent_single_noise_costs() -> None:
    groups = GroupGaussian(noise_multipliers=(7.0, 12.0), contract=GOOD)
    single = Gaussian(noise_multiplier=1 / math.hypot(1 / 7, 1 / 12), contract=GOOD)
    found = claim(rounds(20, groups), delta=1e-5)
    assert found.epsilon == pytest.approx(claim(rounds(20, single), delta=1e-5).epsilon, rel=1e-13)
    assert found.bound is Bound.EXACT


def test_pure_parts_are_joined_and_only_bounded() -> None:
    found = claim(rounds(100, SELECTION, NOISE), delta=1e-5)
    assert found.epsilon == pytest.approx(1.3328826776987386507, rel=1e-10)
    assert (found.method, found.bound, found.releases) == ("joint", Bound.UPPER, 200)


def test_pure_parts_alone_need_only_what_concerns_them() -> None:
    found = claim(rounds(4, SELECTION), delta=0.0)
    assert found.epsilon == pytest.approx(0.04)
    assert found.bound is Bound.UPPER
    assert found.needs == ("A2", "A6", "A7", "A8", "A9", "A10")
    broken = claim(PureDP(epsilon=1.0), delta=0.0).broken
    assert [(found.id, found.reason, found.epsilon) for found in broken] == [
        ("A6", "what the hyper-parameters were chosen from is not declared", None),
        ("A9", "whether every release draws fresh noise is not declared", None),
    ]


def test_too_many_kinds_of_selections_fall_back_to_the_smaller_valid_bound() -> None:
    many = Composed(events=tuple(PureDP(epsilon=0.001 * k, contract=GOOD) for k in range(1, 60)))
    found = claim(many, delta=1e-5)
    pure = {part.epsilon: 1 for part in many.events if isinstance(part, PureDP)}
    as_gaussian = gaussian.epsilon_from_mu(mu=joint.gaussian_equivalent(pure), delta=1e-5)
    assert found.epsilon == epsilon_from_event(many, delta=1e-5)
    assert found.epsilon < min(as_gaussian, sequential.epsilon(delta=1e-5, mu=0.0, pure=pure))
    assert found.method == "Renyi"
    few_nats = Composed(events=tuple(PureDP(epsilon=1e-7 * k, contract=GOOD) for k in range(1, 60)))
    assert claim(few_nats, delta=1e-30).method == "sequential"


def test_nothing_released_costs_nothing() -> None:
    found = claim(Composed(events=()), delta=1e-5)
    assert (found.epsilon, found.releases, found.covered, found.needs) == (0.0, 0, True, ())
    assert claim(rounds(3, Composed(events=())), delta=0.0).epsilon == 0.0


def test_a_release_without_noise_promises_nothing_whatever_is_beside_it() -> None:
    bare = NonPrivate(reason="raw gradients", contract=GOOD)
    found = claim(Composed(events=(NOISE, bare)), delta=1e-5)
    assert found.epsilon == math.inf
    assert not found.covered
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["epsilon"] is None
    assert plain["reason"] == "raw gradients"
    assert plain["covered"] is False


def test_a_release_without_noise_needs_no_reason_to_promise_nothing() -> None:
    found = claim(Composed(events=(NonPrivate(reason="", contract=GOOD), NOISE)), delta=1e-5)
    assert found.epsilon == math.inf
    assert curve(NonPrivate(reason="")) == NoPromise()


def test_a_claim_is_plain_json() -> None:
    found = claim(Gaussian(noise_multiplier=5.0, contract=replace(GOOD, encoder=None)), delta=1e-5)
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["epsilon"] == found.epsilon
    assert plain["relation"] == "replace one record, same label"
    assert plain["bound"] == "exact"
    (broken,) = plain["broken"]
    assert (broken["id"], broken["examples"], broken["epsilon"]) == ("A1", ["E7"], None)
    assert broken["reason"] == "what the encoder was computed from is not declared"
    assert broken["cost"].endswith("how many records are behind each is not declared: no epsilon is known")
    assert plain["reason"] is None


@pytest.mark.parametrize(
    ("change", "id", "words"),
    [
        ({"encoder": DependsOn.PRIVATE_STATE}, "A1", "encoder depends on private state"),
        ({"encoder": None}, "A1", "not declared"),
        ({"counts": Counts.PRIVATE}, "A3", "counts are private"),
        ({"counts": None}, "A3", "not declared"),
        ({"relation": Relation.REPLACE_ANY_LABEL}, "A3", "declare the counts as not used"),
        ({"relation": Relation.ADD_REMOVE}, "A3", "declare the counts as not used"),
        ({"clip_norm": None}, "A4", "no clip norm"),
        ({"assignment": DependsOn.PRIVATE_STATE}, "A5", "assigned to vectors by private state"),
        ({"assignment": None}, "A5", "not declared"),
        ({"hyperparameters": DependsOn.PRIVATE_STATE}, "A6", "private data"),
        ({"hyperparameters": DependsOn.PAST_OUTPUTS}, "A6", "needs a privacy filter"),
        ({"hyperparameters": None}, "A6", "not declared"),
        ({"fresh_noise": False}, "A9", "noise is reused"),
        ({"fresh_noise": None}, "A9", "not declared"),
    ],
)
def test_each_broken_assumption_is_named_with_its_reason(change: dict[str, Any], id: str, words: str) -> None:
    found = claim(Gaussian(noise_multiplier=9.0, contract=replace(GOOD, **change)), delta=1e-5)
    assert [broken.id for broken in found.broken] == [id]
    assert words in found.broken[0].reason
    assert not found.covered
    assert found.epsilon == claim(Gaussian(noise_multiplier=9.0, contract=GOOD), delta=1e-5).epsilon


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": DependsOn.PAST_OUTPUTS, "assignment": DependsOn.PAST_OUTPUTS},
        {"relation": Relation.REPLACE_ANY_LABEL, "counts": Counts.NOT_USED},
        {"relation": Relation.ADD_REMOVE, "counts": Counts.NOT_USED},
        {"relation": Relation.ZERO_OUT},
        {"counts": Counts.NOT_USED},
    ],
)
def test_other_honest_contracts_are_covered(change: dict[str, Any]) -> None:
    assert claim(Gaussian(noise_multiplier=9.0, contract=replace(GOOD, **change)), delta=1e-5).covered


@pytest.mark.parametrize("change", [{"class_counts": (1.5,)}, {"class_counts": (0,)}, {"relation": None}])
def test_a_contract_that_means_nothing_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        replace(GOOD, **change)


def test_a_ceiling_is_the_lowest_that_some_accountant_knows() -> None:
    round_ = Composed(
        events=(
            LaplaceTopK(k=52, dim=512, score_bound=1.0, scale=52000.0),
            Gaussian(noise_multiplier=26.4163),
        )
    )
    vpp = curve(Repeated(event=round_, count=50))
    assert vpp.auc < curve(rounds(50, Gaussian(noise_multiplier=26.4))).auc + 1e-4
    gumbel = Repeated(event=GumbelTopK(k=52, dim=512, score_bound=1.0, scale=570.0), count=50)
    assert curve(gumbel).tpr(0.01) <= GaussianCurve(mu=gaussian_mu(gumbel)).tpr(0.01)
    promised = claim(gumbel, delta=1e-5)
    assert curve(gumbel).tpr(0.01) <= ApproximateCurve(epsilon=promised.epsilon, delta=1e-5).tpr(0.01) + 1e-9


def test_one_bad_release_among_good_ones_breaks_the_claim_once() -> None:
    bad = Gaussian(noise_multiplier=9.0, contract=replace(GOOD, fresh_noise=False, encoder=None))
    found = claim(Composed(events=(NOISE, rounds(3, bad), NOISE, bad)), delta=1e-5)
    assert [broken.id for broken in found.broken] == ["A1", "A9"]


def test_releases_for_different_relations_are_refused_by_name() -> None:
    other = PureDP(epsilon=0.1, contract=replace(GOOD, relation=Relation.ADD_REMOVE))
    with pytest.raises(ValueError, match="'replace one record, same label' and 'add or remove one record'"):
        claim(Composed(events=(NOISE, other)), delta=1e-5)


def test_releases_for_different_units_are_refused_by_name() -> None:
    other = PureDP(epsilon=0.1, contract=replace(GOOD, unit="one client"))
    with pytest.raises(ValueError, match="'one record of one client' and 'one client'"):
        claim(Composed(events=(NOISE, other)), delta=1e-5)


@dataclass(frozen=True, kw_only=True)
class Shuffled(Leaf):
    """A mechanism that nobody has accounted for."""

    factor: int = 3


@dataclass(frozen=True, kw_only=True)
class Sampled(Event):
    """A combination that nobody has accounted for."""

    factor: int = 4


@pytest.mark.parametrize("unknown", [Shuffled(), Sampled()])
def test_an_unknown_event_is_refused_by_name_at_any_depth(unknown: Event) -> None:
    for event in (unknown, rounds(2, NOISE, unknown), rounds(2, rounds(3, unknown), NOISE)):
        with pytest.raises(UnsupportedEventError, match=rf"{type(unknown).__name__}\(.*factor"):
            claim(event, delta=1e-5)
        with pytest.raises(UnsupportedEventError, match=type(unknown).__name__):
            curve(event)


@pytest.mark.parametrize("delta", [math.nan, -1e-9, 1.0, 1.5])
def test_an_impossible_delta_is_refused(delta: float) -> None:
    for event in (NOISE, SELECTION, Composed(events=()), NonPrivate()):
        with pytest.raises(ValueError, match="delta"):
            claim(event, delta=delta)


def test_delta_zero_is_refused_with_gaussian_noise() -> None:
    with pytest.raises(ValueError, match="Gaussian noise never reaches 0"):
        claim(Composed(events=(NOISE, SELECTION)), delta=0.0)


parts = st.one_of(
    st.floats(0.5, 100.0).map(lambda s: Gaussian(noise_multiplier=s, contract=GOOD)),
    st.sampled_from([0.01, 0.2, 1.5]).map(lambda e: PureDP(epsilon=e, contract=GOOD)),
)


@settings(max_examples=30)
@given(st.lists(parts, min_size=1, max_size=5), parts, st.randoms(use_true_random=False))
def test_order_is_irrelevant_and_more_never_costs_less(found: list[Event], extra: Event, random: Any) -> None:
    before = claim(Composed(events=tuple(found)), delta=1e-6).epsilon
    shuffled = list(found)
    random.shuffle(shuffled)
    assert claim(Composed(events=tuple(shuffled)), delta=1e-6).epsilon == pytest.approx(before, rel=1e-10)
    assert claim(Composed(events=(*found, extra)), delta=1e-6).epsilon >= before * (1 - 1e-11)


@settings(max_examples=30)
@given(st.lists(parts, min_size=1, max_size=5), st.floats(1e-9, 0.5))
def test_the_curve_allows_what_the_claim_promises(found: list[Event], fpr: float) -> None:
    event = Composed(events=tuple(found))
    epsilon = claim(event, delta=1e-6).epsilon
    assert curve(event).tpr(fpr) <= math.exp(epsilon) * fpr + 1e-6 + 1e-9


def test_the_curve_is_that_of_the_mechanism() -> None:
    alone, joined = curve(rounds(4, NOISE)), curve(rounds(4, NOISE, SELECTION))
    assert isinstance(alone, GaussianCurve)
    assert alone.mu == pytest.approx(2 / 30, rel=1e-14)
    assert joined == JointCurve(mu=alone.mu, pure=((0.01, 4),))
    assert curve(Composed(events=(NOISE, NonPrivate()))) == NoPromise()
    assert curve(Composed(events=())) == GaussianCurve(mu=0.0)


def test_assumptions_are_found_and_ordered_by_id() -> None:
    assert in_order(["A10", "A2", "A2", "A1"]) == ("A1", "A2", "A10")
    assert named("A4").statement.startswith("every record is clipped")
    assert broken(Contract(), [a.id for a in ASSUMPTIONS]) != ()
    assert len({a.id for a in ASSUMPTIONS}) == len(ASSUMPTIONS)
    with pytest.raises(ValueError, match="assumption 'A11' is unknown"):
        named("A11")


def test_every_public_name_is_found_in_the_package() -> None:
    import accountant

    source = Path(accountant.__file__).read_text("utf-8")
    typed = set(
        re.findall(r"^    from accountant\.[a-z_.]+ import \w+ as (\w+)$", source, flags=re.MULTILINE)
    )
    assert typed == set(dir(accountant))
    assert all(getattr(accountant, name) is not None for name in typed)
    with pytest.raises(AttributeError, match="no attribute 'epsilon'"):
        _ = accountant.epsilon  # pyright: ignore[reportAttributeAccessIssue]
