"""``privkit explain``: one counterexample, one assumption, or the table of all."""

import json
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from accountant import counterexamples
from accountant.assumptions import ASSUMPTIONS, named
from privkit.cli.app import app

IDS = counterexamples.ids()


def shell(*words: str) -> Any:
    return CliRunner().invoke(app, ["explain", *words])


@pytest.mark.parametrize("id", IDS)
def test_json_holds_everything(id: str) -> None:
    found = json.loads(shell(id, "--samples", "2000", "--json").stdout)
    example = counterexamples.find(id)
    assert (found["id"], found["title"], found["claim"]) == (id, example.title, example.claim)
    assert found["breaks"] == [{"id": id, "statement": named(id).statement} for id in example.breaks]
    assert (found["samples"], found["seed"]) == (2000, 0)
    assert found["D"] != found["D_prime"]
    for fact, row in zip(example.facts(), found["facts"], strict=True):
        assert (row["name"], row["exact"], row["claimed"]) == (fact.name, fact.value, fact.claimed)
    simulated = [row for row in found["facts"] if row["simulated"]]
    assert simulated
    for row in simulated:
        low, high = row["simulated"]["low"], row["simulated"]["high"]
        assert row["simulated"]["agrees"] == (low <= row["exact"] <= high)
        assert (row["simulated"]["n"], row["simulated"]["level"]) == (2000, 0.999)
    assert found["agrees"] == all(row["simulated"]["agrees"] for row in simulated)


@pytest.mark.parametrize("id", IDS)
def test_the_text_says_what_is_claimed_what_is_true_and_what_a_run_shows(id: str) -> None:
    out = shell(id).stdout
    example = counterexamples.find(id)
    lines = out.splitlines()
    assert lines[0] == f"{id}: {example.title}"
    for assumption in example.breaks:
        assert f"breaks {assumption}: {named(assumption).statement}" in lines
    assert f"claimed: {example.claim}" in lines
    assert f"true: {example.truth}" in lines
    assert f"way out: {example.way_out}" in lines
    assert any(line.startswith("D  class ") for line in lines)
    assert any(line.startswith("D' class ") for line in lines)
    assert f"{example.draws:,} runs on each data set, seed 0" in out
    assert " yes" in out
    assert " NO" not in out


def test_kmeans_in_full() -> None:
    lines = shell("E5").stdout.splitlines()
    assert (
        lines[4]
        == "way out: assign records to centroids that are public, or that earlier private outputs give"
    )
    assert lines[5:7] == [
        "D  class a: 9 x (-1), 11 x (0), 10 x (1)",
        "D' class a: 10 x (-1), 11 x (0), 9 x (1)",
    ]
    assert lines[7:9] == [
        "D  k = 2 clusters: 20 records with centre -0.45, 10 records with centre 1",
        "D' k = 2 clusters: 10 records with centre -1, 20 records with centre 0.45",
    ]
    row = next(line for line in lines if line.startswith(" mu factor"))
    assert row.split()[:4] == ["mu", "factor", "1", "6.1492"]
    assert row.split()[-1] == "yes"


def test_the_seed_decides_every_digit() -> None:
    words = ("E2", "--samples", "3000", "--seed")
    first, again, other = (shell(*words, seed).stdout for seed in ("1", "1", "2"))
    assert first == again != other


def test_a_run_that_disagrees_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from accountant.counterexamples.e02_label_change import LabelChange

    monkeypatch.setattr(LabelChange, "factor", property(lambda self: 1.2))
    assert " NO" in shell("E2").stdout
    assert json.loads(shell("E2", "--json").stdout)["agrees"] is False


@pytest.mark.parametrize("words", [(), ("--list",)])
def test_the_table_lists_all_thirteen(words: tuple[str, ...]) -> None:
    out = shell(*words).stdout
    firsts = [line.replace(",", "").split()[:2] for line in out.splitlines() if line.startswith(" E")]
    assert firsts == [[example.id, (*example.breaks, "none")[0]] for example in counterexamples.every()]
    assert "1.3515" in next(line for line in out.splitlines() if line.startswith(" E2 "))
    assert max(map(len, out.splitlines())) <= 80
    assert max(len(example.short) for example in counterexamples.every()) <= 30
    assert len(out.splitlines()) <= 32


def test_the_table_as_json_holds_every_fact() -> None:
    found = json.loads(shell("--json").stdout)
    assert [row["id"] for row in found] == list(IDS)
    assert {row["id"]: row["breaks"] for row in found}["E12"] == ["A2", "A7"]
    assert all(row["facts"] for row in found)


@pytest.mark.parametrize("assumption", [assumption.id for assumption in ASSUMPTIONS])
def test_an_assumption_lists_what_breaks_it(assumption: str) -> None:
    out = shell(assumption.lower()).stdout
    assert out.splitlines()[0] == f"{assumption}: {named(assumption).statement}"
    broken_by = [row["id"] for row in json.loads(shell(assumption, "--json").stdout)["broken_by"]]
    assert broken_by == [e.id for e in counterexamples.every() if assumption in e.breaks]
    assert [line.split()[0] for line in out.splitlines() if line.startswith(" E")] == broken_by
    assert ("no counterexample breaks it" in out) == (not broken_by)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("E15",), "counterexample or assumption 'E15' is unknown; known are E1, "),
        (("",), "counterexample or assumption '' is unknown; known are E1, "),
        (("A11",), "Did you mean A1?"),
        (("E1", "--samples", "0"), "samples=0 must be a whole number of at least 1."),
        (("E1", "--samples", "99"), "samples=99 is too few for an interval; give at least 100."),
        (("A1", "--samples", "500"), "--samples 500 has nothing to run; name a counterexample, such as E3."),
        (("--samples", "-5"), "--samples -5 has nothing to run; name a counterexample, such as E3."),
        (("E1", "--list"), "--list shows all counterexamples and E1 asks for one; leave one of them out."),
    ],
)
def test_bad_input_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    found = shell(*words)
    assert isinstance(found.exception, ValueError)
    assert sentence in str(found.exception)


def test_a_negative_seed_is_bad_usage() -> None:
    assert shell("E1", "--seed", "-1").exit_code == 2


def test_an_unknown_id_ends_with_code_two() -> None:
    words = [sys.executable, "-m", "privkit", "explain", "E99"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr.startswith("privkit: counterexample or assumption 'E99' is unknown;")
    assert found.stderr.count("\n") == 1


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys, privkit.cli.app as c; from typer.testing import CliRunner;"
        "assert CliRunner().invoke(c.app, ['explain', 'E3', '--samples', '100']).exit_code == 0;"
        "heavy = ('torch', 'pandas', 'sklearn', 'matplotlib', 'dp_accounting', 'scipy.stats', 'scipy.optimize');"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
