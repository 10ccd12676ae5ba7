"""What a broken assumption costs, in numbers and in words."""

import importlib
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from accountant import gaussian
from accountant.assumptions import ASSUMPTIONS
from accountant.claims import claim
from accountant.consequences import _CONSEQUENCES, EXAMPLES, Broken
from accountant.contract import Contract, Counts, DependsOn, Query, Relation
from accountant.events import (
    ApproximateDP,
    BoundedRange,
    Composed,
    Event,
    Gaussian,
    GroupGaussian,
    LaplaceTopK,
    NonPrivate,
    PureDP,
    Repeated,
)

GOOD = Contract(
    query=Query.CLASS_MEANS,
    clip_norm=1.0,
    encoder=DependsOn.PUBLIC,
    assignment=DependsOn.PUBLIC,
    counts=Counts.PUBLIC,
    hyperparameters=DependsOn.PUBLIC,
    fresh_noise=True,
    class_counts=(50,) * 7,
)
PRIVATE = replace(GOOD, encoder=DependsOn.PRIVATE_STATE)


def broken(event: Event, *, delta: float = 1e-5) -> Broken:
    (found,) = claim(event, delta=delta).broken
    return found


def at_mu(mu: float, delta: float = 1e-5) -> float:
    return gaussian.epsilon_from_mu(mu=mu, delta=delta)


def test_a_private_encoder_moves_every_record_of_every_class() -> None:
    found = broken(Repeated(event=Gaussian(noise_multiplier=300.0, contract=PRIVATE), count=4))
    factor = math.hypot(*(50,) * 7)
    assert factor == pytest.approx(132.3, abs=0.05)
    assert found.epsilon == pytest.approx(at_mu(factor * 2 / 300), rel=1e-12)
    assert f"mu is 132.3 times what is claimed, epsilon {found.epsilon:.4g}" in found.cost
    assert found.examples == ("E7",)


def test_only_the_releases_that_break_it_are_multiplied() -> None:
    good = Gaussian(noise_multiplier=30.0, contract=GOOD)
    one = GroupGaussian(noise_multipliers=(40.0, 40.0), contract=replace(PRIVATE, class_counts=(3, 4)))
    other = Gaussian(noise_multiplier=99.0, contract=replace(PRIVATE, class_counts=(12,)))
    found = broken(Composed(events=(good, Repeated(event=one, count=3), other)))
    moved = math.hypot(1 / 30, 5 * math.sqrt(3 * 2) / 40, 12 / 99)
    assert found.epsilon == pytest.approx(at_mu(moved), rel=1e-12)
    assert "mu is 12 times what is claimed," in found.cost


def test_one_release_of_unknown_reach_makes_the_price_unknown_and_says_why() -> None:
    known = Gaussian(noise_multiplier=30.0, contract=PRIVATE)
    unknown = Gaussian(noise_multiplier=30.0, contract=replace(PRIVATE, class_counts=()))
    for parts in ((known, unknown), (unknown, known)):
        found = broken(Composed(events=parts))
        assert found.epsilon is None
        assert found.cost.endswith("is not declared: no epsilon is known")


@pytest.mark.parametrize(
    "leaf",
    [
        BoundedRange(eta=0.1, contract=PRIVATE),
        ApproximateDP(epsilon=0.1, delta=1e-6, contract=PRIVATE),
        PureDP(epsilon=0.1, contract=PRIVATE),
    ],
)
def test_a_guarantee_is_stated_for_the_whole_mechanism_whatever_moves_its_input(leaf: Event) -> None:
    assert claim(leaf, delta=1e-5).broken == ()


@pytest.mark.parametrize(
    ("query", "relation", "times"),
    [
        (Query.CLASS_MEANS, Relation.REPLACE_SAME_LABEL, 1.0),
        (Query.CLASS_MEANS, Relation.ZERO_OUT, 2.0),
        (Query.CLASS_SUMS, Relation.ADD_REMOVE, 2.0),
        (Query.SUMS_AND_COUNTS, Relation.REPLACE_ANY_LABEL, 1.0),
        (Query.SUMS_AND_COUNTS, Relation.ADD_REMOVE, math.sqrt(2)),
    ],
)
def test_a_private_encoder_moves_a_sum_by_its_whole_range_under_every_relation(
    query: Query, relation: Relation, times: float
) -> None:
    contract = replace(PRIVATE, query=query, relation=relation, counts=Counts.NOT_USED, class_counts=(50,))
    found = broken(Gaussian(noise_multiplier=100.0, contract=contract))
    assert found.epsilon == pytest.approx(at_mu(50 * times / 100), rel=1e-12)


def test_what_is_not_declared_has_no_known_price() -> None:
    for name in ("encoder", "assignment", "counts", "clip_norm", "hyperparameters", "fresh_noise"):
        contract = replace(GOOD, **{name: None}, class_counts=() if name == "encoder" else GOOD.class_counts)
        found = broken(Gaussian(noise_multiplier=9.0, contract=contract))
        assert found.epsilon is None, name


def test_one_sum_over_all_records_has_no_classes_to_count_or_assign() -> None:
    contract = replace(GOOD, query=Query.RECORD_SUM, counts=Counts.PRIVATE, assignment=None, class_counts=())
    assert claim(Gaussian(noise_multiplier=9.0, contract=contract), delta=1e-5).covered


@pytest.mark.parametrize("changed", [{"encoder": DependsOn.PRIVATE_STATE}, {"counts": None}])
def test_a_release_without_noise_stays_one_whatever_else_is_broken(changed: dict) -> None:
    noisy = Gaussian(noise_multiplier=30.0, contract=replace(GOOD, **changed))
    found = broken(Composed(events=(noisy, NonPrivate(contract=GOOD))))
    assert found.epsilon == math.inf
    assert found.to_dict()["epsilon"] is None


def test_approximate_parts_take_their_share_of_delta_before_anything_is_priced() -> None:
    noisy = Gaussian(noise_multiplier=300.0, contract=PRIVATE)
    lossy = ApproximateDP(epsilon=1e-9, delta=5e-6, contract=GOOD)
    found = broken(Composed(events=(noisy, lossy)))
    left = -math.expm1(math.log1p(-1e-5) - math.log1p(-5e-6))
    assert found.epsilon == pytest.approx(at_mu(math.hypot(*(50,) * 7) / 300, left), rel=1e-9)
    lossier = replace(lossy, delta=2e-5)
    found = broken(Composed(events=(noisy, lossier)))
    assert found.epsilon == math.inf
    assert found.cost.endswith("no epsilon holds, another release promises none")


def test_delta_zero_has_no_price_but_a_sentence() -> None:
    found = broken(PureDP(epsilon=1.0, contract=replace(GOOD, hyperparameters=None)), delta=0.0)
    assert found.epsilon is None
    assert found.cost.endswith("no epsilon is known")


def test_what_neighbours_can_be_told_apart_by_has_delta_one() -> None:
    for change in (
        {"counts": Counts.PRIVATE},
        {"assignment": DependsOn.PRIVATE_STATE},
        {"fresh_noise": False},
    ):
        found = broken(Gaussian(noise_multiplier=9.0, contract=replace(GOOD, **change)))
        assert found.epsilon == math.inf
        assert found.cost.endswith("delta = 1, no epsilon holds")
    changed = replace(GOOD, relation=Relation.REPLACE_ANY_LABEL)
    assert "moves two classes" in broken(Gaussian(noise_multiplier=9.0, contract=changed)).cost


def test_choices_made_on_earlier_outputs_cost_nothing_more_with_a_filter() -> None:
    filtered = replace(GOOD, hyperparameters=DependsOn.PAST_OUTPUTS)
    found = broken(Gaussian(noise_multiplier=9.0, contract=filtered))
    assert found.epsilon == pytest.approx(at_mu(1 / 9), rel=1e-12)
    selection = LaplaceTopK(k=2, dim=9, score_bound=1.0, scale=400.0, contract=filtered)
    beside = claim(
        Composed(events=(Gaussian(noise_multiplier=9.0, contract=filtered), selection)), delta=1e-5
    )
    (found,) = beside.broken
    assert found.epsilon is not None
    assert found.epsilon >= beside.epsilon
    assert "filter on the sum of mu^2" in found.cost


def test_every_assumption_has_a_consequence_and_every_example_exists() -> None:
    ids = [assumption.id for assumption in ASSUMPTIONS]
    assert list(_CONSEQUENCES) == list(EXAMPLES) == ids
    counterexamples = importlib.import_module("accountant.counterexamples")
    for id, examples in EXAMPLES.items():
        for example in examples:
            assert counterexamples.find(example).id == example
            assert id in counterexamples.find(example).breaks


SEVERAL = """
import json
from dataclasses import replace
from accountant.claims import claim
from accountant.contract import *
from accountant.events import *
made = Contract(encoder=DependsOn.PRIVATE_STATE, query=Query.CLASS_MEANS)
made = [replace(made, class_counts=(n,) * (n % 3)) for n in range(9)]
parts = tuple(Gaussian(noise_multiplier=9.0 + n, contract=c) for n, c in enumerate(made))
print(json.dumps(claim(Composed(events=parts), delta=1e-5).to_dict()))
"""


def test_the_same_claim_is_written_in_every_process() -> None:
    written = set()
    for seed in ("0", "1", "2"):
        command, root = [sys.executable, "-c", SEVERAL], Path(__file__).parent.parent
        env = os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=True)
        written.add(run.stdout)
    (found,) = written
    assert [b["id"] for b in json.loads(found)["broken"]] == ["A1", "A3", "A4", "A5", "A6", "A9"]
