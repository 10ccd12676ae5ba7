"""``privkit spend``: every client's curve, what is left, which round would exceed it; a changed ledger is refused."""

import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accountant.accountants import smallest
from accountant.budget import Budget, BudgetExceededError
from accountant.contract import Contract, Counts, DependsOn, Relation
from accountant.events import Event, Gaussian, NonPrivate, PureDP, Repeated
from accountant.gaussian import epsilon_from_mu, mu_from_epsilon
from privkit import Recorder, ledger
from privkit.cli import main
from privkit.release import Prototypes, Release
from privkit.spend import holders
from privkit.statement import shown
from privkit.store import Run, RunInfo

DELTA = 1e-5
LOUD, QUIET = Gaussian(noise_multiplier=8.0), Gaussian(noise_multiplier=16.0)


def record(path: Path, *rounds: tuple[Event, ...], planned: int | None = None, **changes: Any) -> Path:
    """Record a run: one tuple of events per round, one event per client."""
    sent = Prototypes(vectors=np.ones((1, 2)), labels=np.array([0]))
    sizes = {"clients": len(rounds[0]), "rounds": planned or len(rounds), "num_classes": 1, "dim": 2}
    recorder = Recorder(path, **{**sizes, **changes})
    for t, events in enumerate(rounds):
        for m, event in enumerate(events):
            recorder.record(round=t, client=m, payload=sent, event=event)
    return path


class Shell:
    """Runs ``privkit spend`` as a user would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        monkeypatch.setenv("COLUMNS", "120")

    def __call__(self, *words: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["privkit", "spend", *map(str, words)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self.capsys.readouterr()
        return int(stop.value.code or 0), out, err

    def clients(self, *words: object) -> list[dict[str, Any]]:
        code, out, err = self(*words, "--json")
        assert code == 0, err
        return json.loads(out)["clients"]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


# ---------------------------------------------------------------------- one run


def test_the_curve_is_the_cost_of_every_prefix(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD, QUIET), (LOUD, LOUD), (LOUD, PureDP(epsilon=0.1)))
    one, other = shell.clients("--run", run)
    assert [p["rounds"] for p in one["curve"]] == [1, 2, 3]
    for point in one["curve"]:
        wanted = epsilon_from_mu(mu=math.sqrt(point["rounds"]) / 8, delta=DELTA)
        assert point["epsilon"] == pytest.approx(wanted, rel=1e-12)
    assert other["curve"][1]["epsilon"] == pytest.approx(
        epsilon_from_mu(mu=math.hypot(1 / 8, 1 / 16), delta=DELTA)
    )
    assert (one["method"], one["bound"], one["spent"]) == ("exact", "exact", one["curve"][-1]["epsilon"])
    assert (other["bound"], other["client"]) == ("upper bound", "client 1")
    assert (one["relation"], one["unit"]) == ("replace one record, same label", "one record of one client")
    assert (one["budget"], one["projection"], one["releases_left"]) == (None, "no budget", None)


def test_the_projection_names_the_round_that_would_exceed(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD,), (LOUD,))
    epsilon = epsilon_from_mu(mu=math.sqrt(36) / 8, delta=DELTA)
    (found,) = shell.clients("--run", run, "--epsilon", epsilon * (1 + 1e-9))
    assert (found["releases_left"], found["exceeding_round"]) == (34, 37)
    assert found["projection"] == "34 more rounds fit; round 37 would exceed it"
    assert found["remaining"] == pytest.approx(epsilon - found["spent"], rel=1e-6)
    (exact,) = shell.clients("--run", run, "--epsilon", epsilon_from_mu(mu=math.sqrt(2.5) / 8, delta=DELTA))
    assert exact["projection"] == "round 3 would exceed it"
    (over,) = shell.clients("--run", run, "--epsilon", 0.01)
    assert (over["projection"], over["remaining"]) == ("the budget is EXCEEDED", 0)


def test_the_budget_is_the_runs_own_else_its_promise(tmp_path: Path, shell: Shell) -> None:
    both = record(tmp_path / "both", (LOUD,), promise=(4.0, 1e-6), budget=(3.0, 1e-7))
    promised = record(tmp_path / "promised", (LOUD,), promise=(4.0, 1e-6))
    assert shell.clients("--run", both)[0]["budget"] == {"epsilon": 3.0, "delta": 1e-7, "adaptive": True}
    (found,) = shell.clients("--run", promised)
    assert (found["budget"], found["delta"]) == ({"epsilon": 4.0, "delta": 1e-6, "adaptive": False}, 1e-6)
    (asked,) = shell.clients("--run", promised, "--epsilon", 2, "--delta", 1e-9)
    assert asked["budget"] == {"epsilon": 2.0, "delta": 1e-9, "adaptive": False}
    (other,) = shell.clients("--run", promised, "--delta", 1e-9)
    assert (other["budget"], other["delta"]) == (None, 1e-9)


def test_an_unfinished_run_says_whether_the_rest_of_its_plan_fits(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD,), (LOUD,), planned=5)
    (found,) = shell.clients("--run", run, "--epsilon", 2)
    assert (found["rounds_done"], found["rounds_planned"]) == (2, 5)
    assert found["projection"].startswith("all 5 planned rounds fit; round ")
    _, out, _ = shell("--run", run)
    assert "mine: epsilon after 2 of 5 rounds, delta 1e-05" in out


def test_a_run_that_stopped_says_so_and_its_ledger_proves_it(tmp_path: Path, shell: Shell) -> None:
    sizes: dict[str, Any] = {"clients": 1, "rounds": 9, "num_classes": 1, "dim": 2}
    sent = Prototypes(vectors=np.ones((1, 2)), labels=np.array([0]))
    with Recorder(tmp_path / "mine", **sizes, budget=(1.0, DELTA)) as recorder:
        for t in range(4):
            recorder.record(round=t, client=0, payload=sent, event=LOUD)
        with pytest.raises(BudgetExceededError):
            recorder.reserve(client=0, event=LOUD)
    _, out, _ = shell("--run", tmp_path / "mine")
    assert "mine stopped before round 5 of 9: client 0 has spent epsilon 0.9" in out
    assert "the ledger's releases prove it" in out
    assert "round 5 would exceed it; upper bound, Gaussian filter" in out
    (found,) = shell.clients("--run", tmp_path / "mine")
    assert found["stopped"].startswith("mine stopped before round 5 of 9")


def test_a_forged_stop_is_refused(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (QUIET,), planned=3, budget=Budget(epsilon=5.0, delta=DELTA))
    forged = {
        "round": 1,
        "client": 0,
        "stop": {
            "spent": 0.2,
            "exceeds": 9.0,
            "budget": {"epsilon": 5.0, "delta": DELTA, "adaptive": False},
            "event": {"event": "Gaussian", "noise_multiplier": 16.0},
        },
    }
    anchor = ledger.append(run / "ledger.jsonl", [forged], Run(run).anchor)
    document = json.loads((run / "run.json").read_text())
    document["progress"] = {"rounds": 1, "ledger": anchor.to_dict(), "ended": True}
    (run / "run.json").write_text(json.dumps(document))
    code, _, err = shell("--run", run)
    assert code == 2
    assert "says that the budget was spent, but the client's releases leave room for one more" in err


@pytest.mark.parametrize("line", [1, 2, 3])
def test_a_flipped_byte_is_refused_with_its_line(tmp_path: Path, shell: Shell, line: int) -> None:
    run = record(tmp_path / "mine", (LOUD,), (LOUD,), (LOUD,), planned=4)
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"noise_multiplier":8.0', b'"noise_multiplier":9.0')
    (run / "ledger.jsonl").write_bytes(b"".join(lines))
    code, out, err = shell("--run", run)
    assert (code, out) == (2, "")
    assert f"was changed: line {line} does not match its hash" in err


def test_a_cut_tail_is_refused(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD,), (LOUD,))
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (run / "ledger.jsonl").write_bytes(lines[0])
    code, _, err = shell("--run", run)
    assert code == 2
    assert "was cut: it holds 1 whole lines where run.json anchors 2" in err


def test_releases_without_noise_have_no_epsilon(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD,), (NonPrivate(reason="off"),), promise=(4.0, DELTA))
    (found,) = shell.clients("--run", run)
    assert [p["epsilon"] is None for p in found["curve"]] == [False, True]
    assert (found["spent"], found["releases_left"], found["remaining"]) == (None, 0, 0)
    code, out, _ = shell("--run", run)
    assert code == 0
    assert "spent inf of 4, 0 left; nothing is promised: off" in out


def test_outputs_that_chose_the_noise_need_an_adaptive_budget(tmp_path: Path, shell: Shell) -> None:
    chosen = Gaussian(noise_multiplier=8.0, contract=Contract(hyperparameters=DependsOn.PAST_OUTPUTS))
    run = record(tmp_path / "mine", (chosen,))
    code, _, err = shell("--run", run, "--epsilon", 4)
    assert code == 2
    assert "set adaptive to true" in err
    (found,) = shell.clients("--run", run, "--epsilon", 4, "--adaptive")
    assert (found["method"], found["bound"]) == ("Gaussian filter", "upper bound")
    promised = record(tmp_path / "promised", (chosen,), promise=(4.0, DELTA))
    assert shell("--run", promised)[0] == 2
    (found,) = shell.clients("--run", promised, "--adaptive")
    assert (found["budget"]["adaptive"], found["releases_left"] > 0) == (True, True)


def test_a_run_without_releases_has_spent_nothing(tmp_path: Path, shell: Shell) -> None:
    Recorder(tmp_path / "mine", clients=1, rounds=3, num_classes=1, dim=2, promise=(4.0, DELTA))
    (found,) = shell.clients("--run", tmp_path / "mine")
    assert (found["spent"], found["curve"], found["method"]) == (0, [], "nothing ran")
    assert found["projection"] == "nothing released yet"
    code, out, _ = shell("--run", tmp_path / "mine")
    assert (code, out.startswith("client 0: spent 0 of 4, 4 left; nothing released yet")) == (0, True)


def test_costs_under_two_relations_are_not_added(tmp_path: Path, shell: Shell) -> None:
    other = Gaussian(noise_multiplier=8.0, contract=Contract(relation=Relation.ADD_REMOVE))
    run = Run(record(tmp_path / "mine", (LOUD,), planned=2))
    sent = Prototypes(vectors=np.ones((1, 2)), labels=np.array([0]))
    run.commit(1, [Release(round=1, client=0, payload=sent, event=other)])  # the recorder refuses it
    code, _, err = shell("--run", run.path)
    assert code == 2
    assert "mixes two relations" in err


# ---------------------------------------------------------------------- several silos


@pytest.fixture
def silos(tmp_path: Path) -> tuple[Path, Path]:
    """Return two runs of one client each, the second one a round ahead."""
    return (
        record(tmp_path / "north", (LOUD,), (LOUD,), promise=(4.0, DELTA)),
        record(tmp_path / "south", (QUIET,), (QUIET,), (QUIET,), promise=(4.0, DELTA)),
    )


def test_silos_with_records_of_their_own_stay_apart(silos: tuple[Path, Path], shell: Shell) -> None:
    north, south = shell.clients("--run", silos[0], "--run", silos[1])
    assert (north["run"], south["run"]) == ("north", "south")
    assert north["spent"] == pytest.approx(epsilon_from_mu(mu=math.sqrt(2) / 8, delta=DELTA))
    assert south["spent"] == pytest.approx(epsilon_from_mu(mu=math.sqrt(3) / 16, delta=DELTA))


def test_silos_that_share_records_add_up_round_by_round(silos: tuple[Path, Path], shell: Shell) -> None:
    (both,) = shell.clients("--run", silos[0], "--run", silos[1], "--shared", "north, south")
    assert (both["run"], both["client"]) == ("north + south", "north:client 0 + south:client 0")
    mus = [math.sqrt(n / 64 + s / 256) for n, s in ((1, 1), (2, 2), (2, 3))]
    assert [p["epsilon"] for p in both["curve"]] == [
        pytest.approx(epsilon_from_mu(mu=mu, delta=DELTA)) for mu in mus
    ]
    assert both["budget"]["epsilon"] == 4


def test_copies_cost_m_times_mu(silos: tuple[Path, Path], shell: Shell) -> None:
    (found,) = shell.clients("--run", silos[0], "--copies", 3)
    assert found["spent"] == pytest.approx(epsilon_from_mu(mu=3 * math.sqrt(2) / 8, delta=DELTA))


def test_clients_of_one_run_can_share_by_name(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD, LOUD, QUIET))
    pair, alone = shell.clients("--run", run, "--shared", "client 0,client 1")
    assert (pair["client"], alone["client"]) == ("client 0 + client 1", "client 2")
    assert pair["spent"] == pytest.approx(epsilon_from_mu(mu=math.sqrt(2) / 8, delta=DELTA))


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("north,east", "--shared 'east' names no client; write run:client, one of north:client 0"),
        ("client 0,north", "--shared 'client 0' names 2 clients"),
        ("north", "name at least two clients"),
        ("", "--shared '' names no client; give names with commas between, or leave it out"),
        (",", "--shared ',' names no client"),
    ],
)
def test_names_that_fit_no_client_or_several_are_refused(
    silos: tuple[Path, Path], shell: Shell, names: str, text: str
) -> None:
    code, _, err = shell("--run", silos[0], "--run", silos[1], "--shared", names)
    assert code == 2
    assert text in err


def test_clients_with_different_budgets_need_one_for_what_they_share(tmp_path: Path, shell: Shell) -> None:
    one = record(tmp_path / "one", (LOUD,), budget=(4.0, DELTA))
    two = record(tmp_path / "two", (LOUD,), promise=(2.0, DELTA))
    code, _, err = shell("--run", one, "--run", two, "--shared", "one,two")
    assert code == 2
    assert "share records and have different budgets; give --epsilon and --delta" in err
    (found,) = shell.clients("--run", one, "--run", two, "--shared", "one,two", "--epsilon", 3)
    assert found["budget"] == {"epsilon": 3.0, "delta": DELTA, "adaptive": True}


def test_the_same_folder_twice_is_refused(silos: tuple[Path, Path], shell: Shell) -> None:
    code, _, err = shell("--run", silos[0], "--run", silos[0])
    assert code == 2
    assert "two runs are named 'north'; give each folder once" in err


def test_the_runs_of_a_study_are_named_by_their_path(tmp_path: Path, shell: Shell) -> None:
    record(tmp_path / "study" / "noisy" / "seed-0", (LOUD,))
    record(tmp_path / "study" / "noisy" / "seed-1", (LOUD,))
    assert [c["run"] for c in shell.clients("--run", tmp_path / "study")] == ["noisy/seed-0", "noisy/seed-1"]
    other = shutil.copytree(tmp_path / "study" / "noisy" / "seed-0", tmp_path / "lone")
    named = [h.run for h in holders([tmp_path / "study", other])]
    assert named == ["study/noisy/seed-0", "study/noisy/seed-1", "lone"]


# ---------------------------------------------------------------------- without a run, and how it looks


def test_plain_noise_needs_no_run(shell: Shell) -> None:
    (found,) = shell.clients("--sigma", 26.38, "--rounds", 50, "--delta", DELTA, "--epsilon", 2)
    assert found["spent"] == pytest.approx(epsilon_from_mu(mu=math.sqrt(50) / 26.38, delta=DELTA))
    total = math.floor((mu_from_epsilon(epsilon=2.0, delta=DELTA) * 26.38) ** 2)
    assert found["releases_left"] == total - 50
    assert len(found["curve"]) == 50


def test_a_million_rounds_are_a_short_table(shell: Shell) -> None:
    code, out, _ = shell("--sigma", 1000, "--rounds", 1_000_000, "--delta", DELTA)
    assert code == 0
    rows = [line for line in out.splitlines() if line.startswith("│")]
    assert len(rows) == 25
    assert rows[-1].split("│")[1:3] == [" 1000000 ", "      4.377 "]
    assert len(shell.clients("--sigma", 1000, "--rounds", 1_000_000)[0]["curve"]) == 1000


def test_clients_that_spent_the_same_are_one_column_and_bars_grow(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", *[(LOUD, LOUD, QUIET)] * 30)
    _, out, _ = shell("--run", run)
    rows = [line.split("│") for line in out.splitlines() if line.startswith("│")]
    assert len(rows) == 25
    assert "client 0, client 1" in out
    bars = [row[-2].count("█") for row in rows]
    assert bars == sorted(bars)
    assert bars[-1] == 24
    wanted = smallest(Repeated(event=LOUD, count=30), delta=DELTA).epsilon
    assert f"client 0, client 1: spent ({wanted:.4g}); no budget; exact" in out


DECLARED = Contract(
    clip_norm=1.0,
    encoder=DependsOn.PUBLIC,
    assignment=DependsOn.PUBLIC,
    counts=Counts.PUBLIC,
    hyperparameters=DependsOn.PUBLIC,
    fresh_noise=True,
)


def seeded(path: Path, seed: int, *, cell: str = "noisy", contract: Contract = DECLARED) -> Path:
    """Write a run as training does: two clients, one round."""
    info = RunInfo(cell=cell, seed=seed, rounds=1, clients=("a", "b"), num_classes=1, dim=2)
    event = Gaussian(noise_multiplier=8.0, contract=contract)
    sent = Prototypes(vectors=np.ones((1, 2)), labels=np.array([0]))
    run = Run.create(path, info)
    run.commit(0, [Release(round=0, client=m, payload=sent, event=event) for m in range(2)])
    return path


def test_seeds_that_spent_the_same_are_one_block_under_their_cell(tmp_path: Path, shell: Shell) -> None:
    for seed in (0, 1, 2):
        seeded(tmp_path / "study" / "x" / f"seed-{seed}", seed)
    _, out, _ = shell("--run", tmp_path / "study")
    assert out.count("noisy, seeds 0-2: epsilon after 1 rounds") == 1
    assert out.count("a, b: spent") == 1
    (tmp_path / "study" / "x" / "seed-1").rename(tmp_path / "seed-1")
    assert "noisy, seeds 0, 2: epsilon" in shell("--run", tmp_path / "study")[1]
    assert "noisy, seed 1: epsilon" in " ".join(shell("--run", tmp_path / "seed-1")[1].split())


def test_many_cells_are_a_line_each(tmp_path: Path, shell: Shell) -> None:
    for cell in "vwxyz":
        for seed in (0, 1):
            seeded(tmp_path / cell / f"seed-{seed}", seed, cell=cell)
    _, out, _ = shell("--run", tmp_path)
    lines = out.splitlines()
    assert [line.partition(": spent")[0] for line in lines[:5]] == [
        f"{cell}, seeds 0-1: a, b" for cell in "vwxyz"
    ]
    assert lines[5:] == [
        "Give --run one of them for its curve.",
        "Counted from ledgers alone; privkit audit holds the messages against them.",
    ]


def test_an_epsilon_that_is_no_promise_stands_in_brackets(tmp_path: Path, shell: Shell) -> None:
    broken = replace(DECLARED, counts=Counts.PRIVATE, encoder=DependsOn.PRIVATE_STATE)
    epsilon = epsilon_from_mu(mu=1 / 8, delta=DELTA)
    _, out, _ = shell("--run", seeded(tmp_path / "broken", 0, contract=broken))
    assert f"spent ({epsilon:.4g})" in out
    assert f"│ ({epsilon:.4g}) │" in out
    assert "no promise: A1, A3 are broken, see privkit audit" in out
    _, out, _ = shell("--run", seeded(tmp_path / "kept", 0))
    assert f"spent {epsilon:.4g};" in out
    assert "see privkit audit" not in out


def test_what_rounding_leaves_is_nothing(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD,))
    (found,) = shell.clients("--run", run)
    spent = found["spent"]
    for left, shown_left in ((1e-13, 0.0), (1e-3, 1e-3)):
        (found,) = shell.clients("--run", run, "--epsilon", spent + left)
        assert found["remaining"] == pytest.approx(shown_left)


def test_a_filter_without_a_budget_is_refused(tmp_path: Path, shell: Shell) -> None:
    run = record(tmp_path / "mine", (LOUD,))
    for words in (("--run", run), ("--sigma", 8)):
        code, out, err = shell(*words, "--adaptive")
        assert (code, out) == (2, "")
        assert "--adaptive is about a budget, and there is none at this delta; give --epsilon" in err


def test_rounds_shown_hold_the_first_and_the_last() -> None:
    for rounds in range(200):
        found = list(shown(rounds, most=25))
        assert found == sorted(set(found))
        assert len(found) == min(rounds, 25)
        assert not rounds or (found[0], found[-1]) == (1, rounds)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "give either --run or --sigma"),
        (("--run", "x", "--sigma", "1"), "give either --run or --sigma"),
        (("--run", "nowhere"), "nowhere does not exist"),
        (("--sigma", "nan"), "noise_multiplier is NaN"),
        (("--sigma", "0"), "noise_multiplier=0.0 must be finite and above 0"),
        (("--sigma", "1", "--epsilon", "-1"), "epsilon=-1.0 must be finite and above 0"),
        (("--sigma", "1", "--delta", "1"), "delta"),
    ],
)
def test_bad_input_ends_with_code_2_and_one_sentence(
    shell: Shell, words: tuple[str, ...], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = shell(*words)
    assert (code, out) == (2, "")
    assert text in err
    assert len(err.splitlines()) == 1


def test_plain_noise_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['privkit', 'spend', '--sigma', '2', '--rounds', '3', '--epsilon', '9'];"
        "from privkit.cli import main\ntry: main()\nexcept SystemExit: pass\n"
        "assert not {'torch', 'pandas', 'sklearn', 'matplotlib', 'dp_accounting'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
