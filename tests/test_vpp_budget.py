import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from accountant import gaussian, joint
from accountant.accountants import gaussian_mu, smallest
from accountant.events import Composed, Event, Gaussian, PureDP, Repeated, TopK
from accountant.groupwise import Allocation
from accountant.selection_budget import KINDS, Budget
from accountant.vpp_budget import Option, Plan, least_noise, plan
from privkit.cli.calibrate import app

DELTA = 1e-5
PAPER, JOINT, VECTOR, EXPONENTIAL, GUMBEL, GAUSSIAN = (kind.name for kind in KINDS)


def planned(*, epsilon: float = 1.0, rounds: int = 50, split: float = 0.1, rho: float = 0.1) -> Plan:
    return plan(
        epsilon=epsilon, delta=DELTA, rounds=rounds, split=split, allocation=Allocation.of(dim=512, rho=rho)
    )


def option(found: Plan, name: str, selections: int) -> Option:
    return next(o for o in found.options if o.kind.name == name and o.selections == selections)


# T, epsilon, r, rho: noise std / H of the paper, Laplace joint, whole vector (0: not published), Gumbel, Gaussian
TABLE = """
1   1 .1  .1   1471   1065  357   103    202
1   8 .1  .1   184    160   0     17.4   33.9
10  1 .1  .1   14708  4072  0     327    639
10  1 .1  .25  36204  10023 0     513    639
10  1 .1  .5   72408  20047 0     726    639
50  1 .05 .1   147078 12964 0     1024   1998
50  1 .1  .1   73539  9247  2531  732    1428
50  1 .1  .25  181019 22761 2531  1148   1428
50  1 .1  .5   362039 45522 2531  1623   1428
50  1 .2  .1   36770  6661  0     529    1032
50  2 .1  .1   36770  4975  0     394    769
50  8 .1  .1   9192   1548  424   123    240
100 1 .1  .1   147078 13102 0     1035   2019
100 8 .1  .5   90510  10810 0     385    339
"""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_selection_noise_agrees_with_the_published_table(line: str) -> None:
    rounds, epsilon, split, rho, *wanted = map(float, line.split())
    found = planned(epsilon=epsilon, rounds=int(rounds), split=split, rho=rho)
    for name, want in zip((PAPER, JOINT, VECTOR, GUMBEL, GAUSSIAN), wanted, strict=True):
        if want:
            last_digit = 0.06 if want < 100 else 1.0
            assert option(found, name, int(rounds)).std == pytest.approx(want, abs=last_digit), name


def test_the_paper_s_own_scale_is_first() -> None:
    found = planned()
    assert found.options[0].scale == pytest.approx(52_000, rel=1e-15)
    assert found.budget.sigma == pytest.approx(29.038, abs=6e-4)
    assert {o.selections for o in found.options} == {50, 1}
    assert {o.selections for o in planned(rounds=1).options} == {1}


budgets = st.builds(
    Budget,
    epsilon=st.floats(-2.0, 2.0).map(lambda power: 10.0**power),
    delta=st.floats(-12.0, -2.0).map(lambda power: 10.0**power),
    rounds=st.integers(1, 120),
    split=st.floats(0.01, 0.9),
)
sizes = st.integers(2, 600).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, d - 1)))


def beside(budget: Budget, selection: Event, selections: int) -> Event:
    release = Repeated(event=Gaussian(noise_multiplier=budget.sigma), count=budget.rounds)
    return Composed(events=(Repeated(event=selection, count=selections), release))


@settings(max_examples=60, deadline=None)
@given(budgets, st.sampled_from(KINDS), sizes, st.booleans())
def test_every_selection_fits_beside_the_paper_s_noise(
    budget: Budget, kind: Any, size: tuple[int, int], once: bool
) -> None:
    dim, k = size
    selections = 1 if once else budget.rounds
    scale = kind.scale(budget, k=k, dim=dim, selections=selections)
    event: TopK = kind.event(k=k, dim=dim, score_bound=1.0, scale=scale)
    spent = smallest(beside(budget, event, selections), delta=budget.delta).epsilon
    assert spent <= budget.epsilon * (1 + 1e-11)


@settings(max_examples=60, deadline=None)
@given(budgets, sizes, st.booleans())
def test_less_selection_noise_would_not_fit(budget: Budget, size: tuple[int, int], once: bool) -> None:
    dim, k = size
    selections = 1 if once else budget.rounds
    mu = gaussian.mu_from_epsilon(epsilon=budget.epsilon, delta=budget.delta)
    for kind in KINDS:
        scale = kind.scale(budget, k=k, dim=dim, selections=selections) * (1 - 1e-6)
        event = kind.event(k=k, dim=dim, score_bound=1.0, scale=scale)
        if kind.name in (JOINT, EXPONENTIAL):
            pure = {event.epsilon: selections}  # pyright: ignore[reportAttributeAccessIssue]
            found = joint.delta(epsilon=budget.epsilon, mu=budget.mu_of_release, pure=pure)
            assert found > budget.delta
        elif kind.name == VECTOR:
            of_one = gaussian.mu_from_laplace(shift=1 / scale)
            assert math.hypot(budget.mu_of_release, of_one * math.sqrt(selections * dim)) > mu
        elif kind.name in (GUMBEL, GAUSSIAN):
            assert gaussian_mu(beside(budget, event, selections)) > mu


def test_a_pure_selection_is_charged_as_randomised_response() -> None:
    budget = Budget(epsilon=1.0, delta=DELTA, rounds=50, split=0.1)
    event = beside(budget, PureDP(epsilon=budget.pure_left(50)), 50)
    assert smallest(event, delta=DELTA).epsilon == pytest.approx(1.0, rel=1e-9)
    assert budget.pure_left(50) > 7 * 0.1 / 50  # the paper's own epsilon_0 leaves most of it unspent


def test_no_selection_beats_chance_at_the_paper_s_budgets() -> None:
    for epsilon, rounds in ((1.0, 50), (8.0, 1), (10.0, 20)):
        found = planned(epsilon=epsilon, rounds=rounds)
        assert found.chance
        assert found.best.kind.name == GUMBEL
        assert found.best.selections == 1
    assert planned().advice == (
        "no private selection beats chance at this budget: take the partition from noisy prototypes that are public "
        "already, or a random one, and save 9.2 % of sigma against the paper's split and 31.3 % against the "
        "authors' code"
    )
    assert "from public data, or a random one" in planned(epsilon=8.0, rounds=1).advice


@pytest.mark.parametrize(
    ("epsilon", "rounds", "of_split", "of_code"),
    [
        (1.0, 50, 100 * (1 - 26.380 / 29.038), 100 * (1 - 26.380 / 38.42)),
        (8.0, 50, 8.4, 100 * (1 - 4.2443 / 5.361)),
    ],
)
def test_savings_agree_with_the_published_multipliers(
    epsilon: float, rounds: int, of_split: float, of_code: float
) -> None:
    found = planned(epsilon=epsilon, rounds=rounds)
    assert found.saved_percent == pytest.approx(of_split, abs=0.02)
    assert found.saved_percent_of_code == pytest.approx(of_code, abs=0.02)


def test_the_published_overlaps_are_those_of_the_default_settings() -> None:
    found = planned(epsilon=10.0, rounds=20)
    overlaps = [option(found, name, 20).fidelity.expected_overlap for name in (PAPER, GUMBEL, GAUSSIAN)]
    assert overlaps == pytest.approx([0.10161, 0.105, 0.104], abs=2e-3)
    assert overlaps[0] == pytest.approx(0.10161, abs=6e-6)


def test_a_code_that_cannot_reach_an_epsilon_is_left_out() -> None:
    found = planned(epsilon=0.002, rounds=5)
    assert (found.sigma_coded, found.saved_percent_of_code) == (None, None)
    assert found.advice.endswith("against the paper's split")


def test_a_selection_that_works_is_recommended() -> None:
    found = planned(epsilon=800.0, rounds=1)
    assert not found.chance
    assert found.advice.startswith("Gumbel noise once finds at best 0.28")


ALLOCATION = Allocation.of(dim=512, rho=0.1)


@pytest.mark.parametrize("overlap", [0.103, 0.105, 0.108])
def test_the_least_noise_for_an_overlap_reaches_it_within_the_budget(overlap: float) -> None:
    budget = {"epsilon": 8.0, "delta": DELTA, "rounds": 20}
    found = least_noise(overlap, **budget, allocation=ALLOCATION)  # pyright: ignore[reportArgumentType]
    assert found is not None
    assert found.option.fidelity.expected_overlap == pytest.approx(overlap, rel=1e-6)
    assert found.option.fidelity.expected_overlap >= overlap
    event = found.option.kind.event(k=52, dim=512, score_bound=1.0, scale=found.option.scale)
    release = Repeated(event=Gaussian(noise_multiplier=found.sigma), count=20)
    selected = Repeated(event=event, count=found.option.selections)
    assert smallest(Composed(events=(selected, release)), delta=DELTA).epsilon <= 8.0
    free = gaussian.sigma_from_epsilon(epsilon=8.0, delta=DELTA, rounds=20)
    assert found.energy == pytest.approx(ALLOCATION.energy_ratio * (found.sigma / free) ** 2)
    assert gaussian.sigma_from_epsilon(
        epsilon=(1 - found.split) * 8.0, delta=DELTA, rounds=20
    ) == pytest.approx(found.sigma, rel=1e-9)


def test_wanting_more_costs_more_until_nothing_reaches_it() -> None:
    budget = {"epsilon": 8.0, "delta": DELTA, "rounds": 1, "allocation": ALLOCATION}
    some, more = (least_noise(overlap, **budget) for overlap in (0.103, 0.108))
    assert some is not None
    assert more is not None
    assert some.sigma < more.sigma
    assert some.split < more.split
    assert least_noise(0.5, **budget) is None


def test_what_the_paper_s_split_finds_can_be_had_for_less_noise() -> None:
    found = planned(epsilon=8.0, rounds=1)
    paper = found.options[0]
    less = least_noise(
        paper.fidelity.expected_overlap, epsilon=8.0, delta=DELTA, rounds=1, allocation=found.allocation
    )
    assert less is not None
    assert less.sigma < 0.93 * found.budget.sigma


@pytest.mark.parametrize(("overlap", "sentence"), [(0.1, "no more than chance"), (1.0, "strictly between")])
def test_an_overlap_that_is_chance_or_certainty_is_refused(overlap: float, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        least_noise(overlap, epsilon=1.0, delta=DELTA, rounds=1, allocation=ALLOCATION)


VPP = (
    "vpp",
    "--epsilon",
    "1",
    "--delta",
    "1e-5",
    "--rounds",
    "50",
    "--dim",
    "512",
    "--rho",
    "0.1",
    "--optimise",
)


def shell(*words: str) -> Any:
    return CliRunner().invoke(app, [*VPP, *words], env={"COLUMNS": "80"})


def test_the_command_prints_every_selection_and_one_sentence() -> None:
    out = shell("--overlap", "0.11").stdout
    found = planned()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "Laplace, as the paper 50 times 5,200 73,539 0.10156" in lines
    assert "Gumbel once 8.066 103.4 0.10264" in lines
    assert "none, a random partition 0.10156" in lines
    assert lines[-2:] == [
        "overlap 0.11: every selection that reaches it spends the whole budget",
        found.advice,
    ]
    assert max(len(line) for line in out.splitlines()[:-2]) <= 80


def test_the_command_prints_json() -> None:
    found = json.loads(shell("--json", "--overlap", "0.102", "--epsilon", "8").stdout)
    made = planned(epsilon=8.0)
    assert found["advice"] == made.advice
    assert found["options"] == [o.to_dict() for o in made.options]
    assert (found["sigma_free"], found["saved_percent"]) == (made.sigma_free, made.saved_percent)
    assert (found["k"], found["dim"], found["overlap"]) == (52, 512, 0.102)
    assert found["least_noise"]["selection"] == GUMBEL
    assert json.loads(shell("--json", "--overlap", "0.9").stdout)["least_noise"] is None


def test_a_wanted_overlap_alone_is_refused() -> None:
    found = CliRunner().invoke(app, [*VPP[:-1], "--overlap", "0.2"])
    assert str(found.exception) == "--overlap 0.2 is used by --optimise; add that, or leave it out."
