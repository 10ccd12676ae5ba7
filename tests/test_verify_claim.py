import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from accountant import gaussian, joint, paper
from accountant.accountants import smallest
from accountant.assumptions import ASSUMPTIONS
from accountant.beside import sigma_beside
from accountant.claimed_rules import BestRenyi, ClassicRenyi, Exact, Formula, Recipe, Stated
from accountant.contract import Relation
from accountant.events import Composed, Gaussian, GumbelTopK, NonPrivate, PureDP, Repeated
from accountant.rdp import VPDR_ORDERS, epsilon_best
from accountant.verify import true_delta, verify, verify_recipe
from privkit.cli.app import app
from tests import exact

DELTA = 1e-5
ROOT2 = math.sqrt(2)


def recipe(rule: Any, *, epsilon: float = 1.0, rounds: int = 1, **more: Any) -> Recipe:
    return Recipe(epsilon=epsilon, delta=DELTA, rounds=rounds, rule=rule, **more)


# epsilon: smallest valid c1, true epsilon with c1 = 1 and with c1 = sqrt 2, delta with c1 = 1; as published
@pytest.mark.parametrize(
    ("epsilon", "least_c1", "of_one", "of_root", "delta_of_one"),
    [
        (0.1, 0.906, None, None, None),
        (0.5, 1.036, 0.520, None, 1.7e-5),
        (1.0, 1.0995, 1.110, 0.759, 4.3e-5),
        (2.0, 1.1752, 2.397, 1.628, 1.4e-4),
        (4.0, 1.2746, 5.302, 3.550, 6.7e-4),
        (8.0, 1.4152, 12.27, 8.0067, 6.2e-3),
        (16.0, 1.6230, 30.5, 19.14, 0.11),
        (32.0, 1.9327, None, 49.9, None),
    ],
)
@pytest.mark.parametrize("rounds", [1, 50])
def test_the_formula_agrees_with_the_published_table(
    epsilon: float,
    least_c1: float,
    of_one: float | None,
    of_root: float | None,
    delta_of_one: float | None,
    rounds: int,
) -> None:
    one = verify_recipe(recipe(Formula(c1=1.0), epsilon=epsilon, rounds=rounds))
    root = verify_recipe(recipe(Formula(c1=ROOT2), epsilon=epsilon, rounds=rounds))
    assert one.least_c1 == pytest.approx(least_c1, abs=6e-4)
    assert root.least_c1 == pytest.approx(one.least_c1, rel=1e-9)
    assert one.valid == (epsilon < 0.3)
    assert root.valid == (epsilon < 8.0)
    if of_one is not None and delta_of_one is not None:
        assert one.claim.epsilon == pytest.approx(of_one, rel=2e-3)
        assert one.true_delta == pytest.approx(delta_of_one, rel=0.05)
    if of_root is not None:
        assert root.claim.epsilon == pytest.approx(of_root, rel=1e-3)
    assert one.examples == (() if one.valid else ("E10",))


def test_formula_noise_at_epsilon_one_wastes_what_is_published() -> None:
    found = verify_recipe(recipe(Formula(c1=ROOT2)))
    assert found.valid
    assert found.excess_percent == pytest.approx(28.6, abs=0.05)
    found = verify_recipe(recipe(Formula(c1=1.0)))
    assert found.excess_percent == pytest.approx(100 * (3.393 / 3.73063 - 1), abs=0.02)


@pytest.mark.parametrize(
    ("epsilon", "rounds", "coded", "together", "saved"),
    [(1.0, 50, 38.42, 26.416, 31.3), (8.0, 50, 5.361, 4.254, 20.6), (10.0, 20, 2.784, 2.250, 19.2)],
)
def test_the_authors_code_wastes_what_is_published(
    epsilon: float, rounds: int, coded: float, together: float, saved: float
) -> None:
    found = verify_recipe(recipe(ClassicRenyi(orders=VPDR_ORDERS), epsilon=epsilon, rounds=rounds, split=0.1))
    assert found.valid
    assert found.sigma == pytest.approx(coded, rel=2e-4)
    assert found.least_sigma == pytest.approx(together, rel=2e-4)
    assert found.excess_percent is not None
    assert 100 - 100 / (1 + found.excess_percent / 100) == pytest.approx(saved, abs=0.06)
    if epsilon == 1.0:
        assert found.claim.epsilon == pytest.approx(0.665, abs=6e-4)


def test_the_exact_split_is_true_and_wasteful() -> None:
    found = verify_recipe(recipe(Exact(), rounds=50, split=0.1))
    assert found.valid
    assert found.claim.epsilon == pytest.approx(0.9016626, abs=1e-6)
    assert found.excess_percent == pytest.approx(9.925, abs=1e-3)


def test_a_selection_that_spends_its_share_in_every_round_breaks_the_claim() -> None:
    found = verify_recipe(
        recipe(ClassicRenyi(orders=VPDR_ORDERS), epsilon=10.0, rounds=20, split=0.1, per_round=True)
    )
    assert not found.valid
    assert found.least_sigma is None
    assert found.claim.epsilon > smallest(Repeated(event=PureDP(epsilon=1.0), count=20), delta=DELTA).epsilon
    assert found.examples == ("E11",)


def test_noise_for_one_round_run_many_times_breaks_the_claim() -> None:
    found = verify_recipe(recipe(Exact(), rounds=20, per_round=True))
    assert found.sigma == pytest.approx(gaussian.sigma_from_epsilon(epsilon=1.0, delta=DELTA), rel=1e-15)
    assert found.claim.epsilon == pytest.approx(5.406928, abs=1e-6)
    assert found.excess_percent == pytest.approx(100 / math.sqrt(20) - 100)
    assert found.examples == ("E11",)


@pytest.mark.parametrize(("epsilon", "any_label"), [(1.0, 1.46517), (2.0, 2.9536), (8.0, 12.256)])
def test_a_label_change_costs_what_is_published(epsilon: float, any_label: float) -> None:
    whole = verify_recipe(recipe(Exact(), epsilon=epsilon))
    found = whole.relations
    assert "so delta = 1" in str(found[Relation.REPLACE_ANY_LABEL])
    assert whole.under[Relation.REPLACE_ANY_LABEL].at_fixed_counts == pytest.approx(any_label, rel=1e-4)
    assert found[Relation.REPLACE_SAME_LABEL] == pytest.approx(epsilon)
    assert "have no sensitivity" in str(found[Relation.ADD_REMOVE])


@pytest.mark.parametrize("rounds", [1, 20])
def test_orders_with_the_best_conversion(rounds: int) -> None:
    free = verify_recipe(recipe(BestRenyi(), rounds=rounds))
    assert free.excess_percent == pytest.approx(8.43, abs=0.005)
    dense = BestRenyi(orders=tuple(1 + 0.01 * n for n in range(1, 5000)))
    assert verify_recipe(recipe(dense, rounds=rounds)).sigma == pytest.approx(free.sigma, rel=1e-6)
    one = BestRenyi(orders=(20.0,)).sigma(epsilon=1.0, delta=DELTA, rounds=rounds)
    mu = math.sqrt(rounds) / one
    of_order = 20 * mu**2 / 2 + math.log1p(-1 / 20) - (math.log(DELTA) + math.log(20)) / 19
    assert of_order == pytest.approx(1.0, rel=1e-12)
    assert epsilon_best(mu=mu, delta=DELTA) <= 1.0


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(-3.0, 4.0).map(lambda power: 10.0**power),
    delta=st.floats(-100.0, -0.5).map(lambda power: 10.0**power),
    rounds=st.integers(1, 10**6),
)
def test_exact_noise_is_true_and_a_little_less_is_false(epsilon: float, delta: float, rounds: int) -> None:
    sigma = gaussian.sigma_from_epsilon(epsilon=epsilon, delta=delta, rounds=rounds)
    enough = verify(
        Repeated(event=Gaussian(noise_multiplier=sigma), count=rounds),
        epsilon=epsilon,
        delta=delta,
        rounds=rounds,
    )
    assert enough.valid
    assert enough.excess_percent == pytest.approx(0.0, abs=1e-9)
    assert enough.true_delta == pytest.approx(delta, rel=1e-7)
    less = verify(
        Repeated(event=Gaussian(noise_multiplier=sigma * (1 - 1e-5)), count=rounds),
        epsilon=epsilon,
        delta=delta,
        rounds=rounds,
    )
    assert not less.valid
    assert less.excess_percent == pytest.approx(-1e-3, rel=1e-6)
    assert less.true_delta > delta


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 6.0), st.floats(0.02, 3.0), st.floats(0.01, 0.4), st.integers(1, 12))
def test_true_delta_agrees_with_the_sum_over_all_outcomes(
    epsilon: float, mu: float, pure: float, times: int
) -> None:
    selected = Repeated(event=PureDP(epsilon=pure), count=times)
    event = Composed(events=(selected, Gaussian(noise_multiplier=1 / mu)))
    found = true_delta(event, epsilon=epsilon)
    wanted = float(exact.log_delta_joint(epsilon, mu, {pure: times}))
    by_gaussian = math.hypot(mu, joint.gaussian_equivalent({pure: times}))
    smaller = min(wanted, gaussian.log_delta_from_mu(epsilon=epsilon, mu=by_gaussian))
    if smaller > -600:
        assert math.log(found) == pytest.approx(smaller, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-30, 1e-8])
def test_delta_at_a_tiny_epsilon_is_the_total_variation(epsilon: float) -> None:
    found = true_delta(Gaussian(noise_multiplier=1.0), epsilon=epsilon)
    assert found == pytest.approx(math.erf(1 / math.sqrt(8)), abs=1e-8)


@pytest.mark.parametrize("sigma", [1e160, 1e300])
def test_noise_beyond_all_measure_is_wasteful(sigma: float) -> None:
    found = verify_recipe(recipe(Stated(noise_multiplier=sigma)))
    assert found.sigma == pytest.approx(sigma)
    assert found.excess_percent == pytest.approx(100 * sigma / 3.73064, rel=1e-5)


def test_noise_that_costs_more_than_a_float_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="sigma=1e-160 is so little noise that no float holds its epsilon"):
        verify_recipe(recipe(Stated(noise_multiplier=1e-160)))


def test_the_ends_of_delta() -> None:
    assert true_delta(Composed(events=()), epsilon=1.0) == 0.0
    assert true_delta(PureDP(epsilon=0.5), epsilon=1.0) == 0.0
    assert true_delta(Gaussian(noise_multiplier=1e-4), epsilon=1.0) == 1.0
    assert true_delta(NonPrivate(), epsilon=1.0) == 1.0


def test_any_selection_leaves_the_least_noise_that_calibration_finds() -> None:
    picks = GumbelTopK(k=52, dim=512, score_bound=1.0, scale=600.0)
    releases = Repeated(event=Gaussian(noise_multiplier=30.0), count=50)
    found = verify(
        Composed(events=(Repeated(event=picks, count=50), releases)), epsilon=1.0, delta=DELTA, rounds=50
    )
    least = sigma_beside(picks, epsilon=1.0, delta=DELTA, rounds=50)
    assert found.least_sigma == pytest.approx(least, rel=1e-9)
    assert found.sigma == pytest.approx(30.0)


def test_a_part_without_noise_makes_any_number_false() -> None:
    found = verify(
        Composed(events=(NonPrivate(), Gaussian(noise_multiplier=9.0))), epsilon=1.0, delta=DELTA, rounds=1
    )
    assert not found.valid
    plain = found.to_dict()
    assert (plain["true_epsilon"], plain["true_delta"], plain["least_sigma"]) == (None, 1.0, None)
    json.dumps(plain, allow_nan=False)


def test_a_formula_is_not_judged_by_a_contract_that_it_does_not_have() -> None:
    found = verify_recipe(recipe(Stated(noise_multiplier=4.0)))
    assert found.claim.broken
    assert found.broken == ()
    assert (found.to_dict()["claim"]["covered"], found.to_dict()["claim"]["broken"]) == (None, [])


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ({"epsilon": 0.0}, r"epsilon=0\.0"),
        ({"delta": 1.0}, r"delta=1\.0"),
        ({"rounds": 0}, "rounds=0"),
        ({"split": 1.0}, r"split=1\.0"),
    ],
)
def test_a_bad_budget_is_refused(bad: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Recipe(**{"epsilon": 1.0, "delta": DELTA, "rounds": 1, "rule": Exact(), **bad})


def shell(*words: str) -> Any:
    return CliRunner().invoke(app, ["verify-claim", *words])


def test_a_false_formula_is_said_to_be_false() -> None:
    found = shell("--epsilon", "8", "--c1", "1")
    assert found.exit_code == 3
    head, tail = found.stdout.split("not checked, a number alone does not say it:\n")
    assert head.splitlines() == [
        "claimed: epsilon 8, delta 1e-05 over 1 round",
        "noise: sigma 0.424133, c1 sqrt(T ln(1/delta)) / epsilon with c1 = 1",
        "true: epsilon 12.2671 at delta 1e-05; delta 0.006205 at epsilon 8 "
        "(replace one record, same label; exact)",
        "FALSE: 29.3 % of the noise is missing, sigma 0.60023 is needed",
        "smallest c1 that is right here: 1.4152",
        "replace one record, any label: epsilon 19.14 at fixed counts, which it changes",
        "zero out one record: epsilon 5.302",
        "why: privkit explain E10",
        "replace one record, any label: not known, a record that changes its label changes the counts that scale the "
        "noise of class means, so delta = 1; release sums and counts (defense sumcount), or claim another relation.",
        "add or remove one record: not known, means of classes have no sensitivity: their count changes with the "
        "record; release sums and counts (defense sumcount), or claim another relation.",
    ]
    assert tail.splitlines() == [f"  {a.id}: {a.statement}" for a in ASSUMPTIONS if a.id != "A8"]


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--sigma", "26.38"), 0, "TRUE: as little noise as any analysis here allows"),
        (("--sigma", "26"), 3, "FALSE: 1.44 % of the noise is missing, sigma 26.3796 is needed"),
        (("--orders", "vpdr"), 0, "TRUE: 31.4 % more noise than needed, sigma 26.3796 is enough"),
        (("--orders", "2,8,32"), 0, "true: epsilon 0."),
        (("--conversion", "best"), 0, "TRUE: 8.43 % more noise than needed, sigma 26.3796 is enough"),
        (
            ("--split", "0.1"),
            0,
            "noise: sigma 29.0383, exactly calibrated, selection epsilon 0.002 per round",
        ),
        (("--split", "0.1", "--sigma", "26.42"), 0, "TRUE: as little noise as any analysis here allows"),
        (("--split", "0.1", "--per-round-epsilon"), 3, "selection epsilon 0.1 per round"),
        (
            ("--split", "0.9", "--per-round-epsilon"),
            3,
            "FALSE: no noise keeps it, the rest alone spends more",
        ),
        (("--per-round-epsilon",), 3, "why: privkit explain E11"),
    ],
)
def test_every_way_to_state_the_noise(words: tuple[str, ...], code: int, line: str) -> None:
    found = shell("--epsilon", "1", "--rounds", "50", *words)
    assert found.exit_code == code
    assert line in found.stdout


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2", "7.7"])
@pytest.mark.parametrize("rounds", ["1", "20", "50"])
def test_noise_that_calibrate_prints_is_true(epsilon: str, rounds: str) -> None:
    budget = ("--epsilon", epsilon, "--delta", "1e-5", "--rounds", rounds)
    table = CliRunner().invoke(app, ["calibrate", "gaussian", *budget]).stdout
    exact = next(line for line in table.splitlines() if line.startswith("│ exact "))
    found = shell(*budget, "--sigma", exact.split("│")[2].strip())
    assert (found.exit_code, "\nTRUE: " in found.stdout) == (0, True)
    vpp = CliRunner().invoke(app, ["calibrate", "vpp", *budget, "--dim", "64"]).stdout
    joint = next(line for line in vpp.splitlines() if line.startswith(" joint  "))
    found = shell(*budget, "--split", "0.1", "--sigma", joint.split()[1])
    assert (found.exit_code, "\nTRUE: " in found.stdout) == (0, True)


@pytest.mark.parametrize("words", [("--sigma", "26"), ("--c1", "1.2"), ("--orders", "vpdr")])
def test_noise_that_is_said_to_be_needed_is_true(words: tuple[str, ...]) -> None:
    out = shell("--epsilon", "1", "--rounds", "50", *words).stdout
    (needed,) = re.findall(r"sigma (\S+) is (?:needed|enough)", out)
    assert shell("--epsilon", "1", "--rounds", "50", "--sigma", needed).exit_code == 0


def test_json_holds_the_whole_verification() -> None:
    found = shell("--epsilon", "1", "--rounds", "50", "--c1", "1", "--json")
    assert found.exit_code == 3
    plain = json.loads(found.stdout)
    of = verify_recipe(recipe(Formula(c1=1.0), rounds=50))
    assert plain["true_epsilon"] == of.claim.epsilon
    assert plain["smallest_valid_c1"] == pytest.approx(paper.smallest_valid_c1(epsilon=1.0, delta=DELTA))
    assert (plain["valid"], plain["excess_percent"]) == (False, of.excess_percent)
    assert plain["not_checked"] == [a.id for a in ASSUMPTIONS if a.id != "A8"]
    assert "delta = 1" in plain["relations"]["replace one record, any label"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "nothing to verify; give --epsilon and how its noise was found, or a configuration file."),
        (
            ("--epsilon", "1"),
            "--epsilon alone has no noise to verify; add one of --sigma, --c1, --orders, --conversion or --split.",
        ),
        (
            ("--epsilon", "1", "--sigma", "3", "--c1", "1"),
            "--sigma and --c1 are two ways to find the noise; give one of them.",
        ),
        (
            ("--epsilon", "1", "--orders", "two"),
            "--orders 'two' is no list; give vpdr, or numbers such as 2,4,8.",
        ),
        (
            ("--epsilon", "1", "--orders", "0.5"),
            "orders=[0.5] must hold at least one order, each finite and above 1.",
        ),
        (("--epsilon", "1", "--sigma", "0"), "sigma=0.0 must be finite and above 0."),
        (("--epsilon", "nan", "--sigma", "1"), "epsilon is NaN; give a number."),
        (("--epsilon", "1", "--split", "1"), "split=1.0 must lie strictly between 0 and 1."),
        (
            ("--epsilon", "1", "--sigma", "3", "--per-round-epsilon"),
            "--sigma 3 is the noise of every round already; leave out --per-round-epsilon.",
        ),
        (
            ("configs/demo.yaml", "--c1", "1"),
            "configs/demo.yaml says what is claimed, and so does --c1; give one of the two.",
        ),
        *(
            (
                ("configs/demo.yaml", *option),
                f"configs/demo.yaml says what is claimed, and so does {option[0]}; give one of the two.",
            )
            for option in (("--delta", "1e-5"), ("--rounds", "1"), ("--per-round-epsilon",), ("--orders", ""))
        ),
        (
            ("--epsilon", "1", "--orders", ""),
            "--orders '' is no list; give vpdr, or numbers such as 2,4,8.",
        ),
    ],
)
def test_what_cannot_be_verified_is_refused(words: tuple[str, ...], sentence: str) -> None:
    found = shell(*words)
    assert isinstance(found.exception, ValueError)
    assert str(found.exception) == sentence


BASE = """
data: {name: digits, domains: [mnist]}
encoder: {name: usps_cnn}
rounds: 4
method: {name: fedproto}
defense: {name: igpp, epsilon: 2.0}
"""


def written(path: Path, more: str) -> str:
    file = path / "study.yaml"
    file.write_text(BASE + more, encoding="utf-8")
    return str(file)


def test_a_true_configuration_ends_with_zero(tmp_path: Path) -> None:
    found = shell(written(tmp_path, ""))
    assert found.exit_code == 0
    assert "study: claimed epsilon 2, delta 1e-05, noise: sigma 3.98763\n  true: epsilon 2 " in found.stdout
    assert "  TRUE: as little noise as any analysis here allows\n" in found.stdout


def test_a_selection_that_runs_once_is_counted_once(tmp_path: Path) -> None:
    vpp = "defense: {name: vpp, epsilon: 2.0, partition: {name: gumbel, once: true}}\n"
    file = tmp_path / "once.yaml"
    file.write_text(BASE.replace("defense: {name: igpp, epsilon: 2.0}\n", vpp), encoding="utf-8")
    found = json.loads(shell(str(file), "--json").stdout)["cells"]["once"]
    assert found["claim"]["releases"] == 5
    assert found["valid"]


def test_cells_that_break_or_promise_nothing(tmp_path: Path) -> None:
    cells = "cells:\n  good: {}\n  open: {defense: none}\n  trained: {model: {adapter: 4}}\n"
    found = shell(written(tmp_path, cells))
    assert found.exit_code == 5
    assert "open: promises nothing\n" in found.stdout
    assert "  NOT COVERED: as little noise" in found.stdout
    assert "  BROKEN A1: the encoder depends on private state" in found.stdout
    assert "(privkit explain E7)" in found.stdout
    plain = json.loads(shell(written(tmp_path, cells), "--json").stdout)["cells"]
    assert plain["open"] is None
    assert [broken["id"] for broken in plain["trained"]["claim"]["broken"]] == ["A1"]
    assert plain["good"]["claim"]["covered"]


def test_an_epsilon_that_rests_on_something_broken_is_in_brackets(tmp_path: Path) -> None:
    out = shell(written(tmp_path, "model: {adapter: 4}\n")).stdout
    assert "  true: (epsilon 2, did A1 hold) at delta 1e-05; " in out
    assert "behind each is not known before a run: audit one to price it (privkit explain E7)\n" in out
    assert "no epsilon is known" not in out


def test_what_no_cell_knows_is_said_once_at_the_end(tmp_path: Path) -> None:
    cells = "cells:\n  one: {}\n  two: {defense: {name: igpp, epsilon: 3.0}}\n  none: {defense: none}\n"
    out = shell(written(tmp_path, cells)).stdout
    assert out.count("not known") == 2
    last = out.splitlines()[-2:]
    assert [line.partition(":")[0] for line in last] == [
        "replace one record, any label",
        "add or remove one record",
    ]
    out = shell(written(tmp_path, cells + "  sums: {defense: {name: sumcount, epsilon: 3.0}}\n")).stdout
    assert out.splitlines()[-1].startswith("one, two: add or remove one record: not known, means of classes")


@pytest.mark.parametrize(
    ("budget", "line"),
    [
        ("{epsilon: 1.5}", "epsilon 1.5 at delta 1e-05, less than all rounds cost: the run stops early"),
        ("{epsilon: 1.5, on_exhausted: refuse}", "less than all rounds cost: the run does not begin"),
        ("{epsilon: 2.5}", "epsilon 2.5 at delta 1e-05, enough for all rounds"),
        ("{epsilon: 2.5, delta: 1.0e-9}", "perhaps less than all rounds cost: then the run stops early"),
    ],
)
def test_a_budget_is_held_against_all_rounds(tmp_path: Path, budget: str, line: str) -> None:
    file = written(tmp_path, f"budget: {budget}\n")
    assert f"{line}\n" in shell(file).stdout
    plain = json.loads(shell(file, "--json").stdout)["cells"]["study"]
    assert f"epsilon: {plain['budget']['epsilon']}" in budget


def test_a_false_cell_outranks_a_broken_one(tmp_path: Path) -> None:
    cells = "cells:\n  early: {defense: {name: vpp_early, epsilon: 2.0}}\n  trained: {model: {adapter: 4}}\n"
    found = shell(written(tmp_path, cells))
    assert found.exit_code == 3
    assert "  true: no epsilon holds, noise groups" in found.stdout
    assert "  FALSE: no noise anywhere else makes up for that\n" in found.stdout


def test_made_up_records_leave_no_counts_behind(tmp_path: Path) -> None:
    from accountant.events import counted
    from privkit.cli.verify_config import planned_event
    from privkit.study import load

    (config,) = load(Path(written(tmp_path, ""))).cells.values()
    assert {leaf.contract.class_counts for leaf in counted(planned_event(config))} == {()}


def test_the_exit_code_reaches_the_shell() -> None:
    words = [sys.executable, "-m", "privkit", "verify-claim", "--epsilon", "8", "--c1", "1"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 3


MIXED = """\
mixed:
  - encoder: usps_cnn
  - {encoder: usps_cnn, model: {hidden: [64]}}
"""


def test_a_mixed_federation_is_covered_only_if_every_client_is(tmp_path: Path) -> None:
    found = shell(written(tmp_path, MIXED))
    assert found.exit_code == 0
    assert "  TRUE: as little noise as any analysis here allows\n" in found.stdout
    found = shell(written(tmp_path, f"{MIXED}  - {{encoder: usps_cnn, model: {{adapter: 4}}}}\n"))
    assert found.exit_code == 5
    assert "  BROKEN A1: the encoder depends on private state" in found.stdout


def test_a_defense_of_prototypes_promises_nothing_for_trained_weights(tmp_path: Path) -> None:
    found = shell(written(tmp_path, "cells: {heads: {method: fedavg_head}}\n"))
    assert isinstance(found.exception, ValueError)
    assert "cell heads: GaussianMeans protects prototypes, and the method sends" in str(found.exception)
    open_cells = "cells: {heads: {method: fedavg_head, defense: none}}\n"
    assert "heads: promises nothing\n" in shell(written(tmp_path, open_cells)).stdout
