"""``privkit table`` and ``privkit report``: from what an audit found, without computing it again."""

import csv
import io
import json
import shutil
import statistics
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privkit.cli import main
from reports import audit_files, findings_file, paper_tables
from reports.findings import Findings
from tests import made


class Shell:
    """Runs commands as a user would, and keeps what they printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["privkit", *map(str, arguments)])
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = self.capsys.readouterr()
        return int(stop.value.code or 0), out, err


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.fixture(scope="module")
def findings() -> Findings:
    return made.findings()


@pytest.fixture
def runs(findings: Findings, tmp_path: Path) -> Path:
    """Two audited folders, and one that was never audited, apart."""
    one_seed = replace(
        made.silent("alone"), cost=replace(made.silent("alone").cost, accuracy=None, by_domain={})
    )
    for name, found in {"a_1": findings, "b": made.findings(cells=(one_seed,))}.items():
        findings_file.write(tmp_path / "runs" / name / "audit" / "findings.json", found)
    (tmp_path / "unaudited").mkdir()
    return tmp_path / "runs"


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_attacks_of_several_runs_are_one_table_at_full_precision(
    runs: Path, findings: Findings, shell: Shell
) -> None:
    code, out, _ = shell("table", "attacks", runs / "*", "--format", "csv")
    assert code == 0
    found = {(row["cell"], row["attack"]): row for row in rows(out)}
    assert len(found) == sum(len(cell.taken) for cell in findings.cells)
    for cell in findings.cells:
        for taken in cell.taken:
            row = found[cell.name, taken.attack]
            assert row["run"] == (runs / "a_1").as_posix()
            assert row["auc"] == ("" if taken.auc is None else repr(taken.auc.value))
            assert (row["reason"] != "") == (taken.auc is None)
    row = found["frozen-igpp-1", "antipodal"]
    assert (row["data"], row["framework"], row["defense"], row["seeds"]) == (
        "digits",
        "fedproto",
        "igpp",
        "3",
    )


def test_utility_has_both_spreads_and_says_why_one_is_missing(
    runs: Path, findings: Findings, shell: Shell
) -> None:
    _, out, _ = shell("table", "utility", runs / "a_1", runs / "b", "--format", "json")
    document = json.loads(out)
    found = {row["cell"]: row for row in document["rows"]}
    cost = findings.cells[0].cost
    row = found[findings.cells[0].name]
    assert row["domain_mnist"] == cost.by_domain["mnist"]
    assert row["std_domains"] == pytest.approx(statistics.stdev(cost.by_domain.values()), rel=1e-12)
    assert row["std_seeds"] == pytest.approx(statistics.stdev(cost.per_seed.values()), rel=1e-12)
    assert found["alone"]["avg"] is None
    assert found["alone"]["reason"] == "the run kept no metrics"
    assert found["frozen-none"]["epsilon"] is None
    assert found["frozen-none"]["epsilon_reason"]


def test_every_format_has_every_row(runs: Path, findings: Findings, shell: Shell) -> None:
    count = sum(len(cell.taken) for cell in findings.cells)
    markdown = shell("table", "attacks", runs / "a_1")[1].strip().splitlines()
    latex = shell("table", "attacks", runs / "a_1", "--format", "tex")[1].strip().splitlines()
    document = json.loads(shell("table", "attacks", runs / "a_1", "--format", "json")[1])
    assert len(markdown) == count + 2
    assert len(latex) == count + 6
    assert r"a\_1" in latex[4]
    assert len(document["rows"]) == count


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("table", "attacks", "unaudited"), "has no audit; run `privkit audit --run"),
        (("table", "utility", "runs/b", "runs/nowhere"), "nowhere does not exist"),
        (("report", "--run", "unaudited"), "has no audit; run `privkit audit --run"),
        (("report", "--run", "nowhere"), "nowhere does not exist"),
        (("table", "runs", "runs/b"), "'runs' is not one of 'attacks', 'utility'"),
        (("table", "attacks", "runs/b", "--format", "html"), "'html' is not one of"),
    ],
)
def test_what_cannot_be_tabulated_is_refused(
    runs: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], complaint: str
) -> None:
    monkeypatch.chdir(runs.parent)
    code, out, err = shell(*arguments)
    assert code == 2
    assert complaint in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""


def test_a_report_is_what_the_audit_wrote_byte_for_byte(runs: Path, findings: Findings, shell: Shell) -> None:
    audited = runs / "written"
    audit_files.write(findings, audited / "audit")
    before = {path.name: path.read_bytes() for path in (audited / "audit").iterdir()}
    for path in (audited / "audit").iterdir():
        if path.name != "findings.json":
            path.unlink()
    code, out, _ = shell("report", "--run", audited)
    assert code == 0
    assert out.strip() == f"Report: {audited / 'audit' / 'report.html'}"
    assert {path.name: path.read_bytes() for path in (audited / "audit").iterdir()} == before


def test_a_page_can_be_written_elsewhere_and_nothing_else_is(
    runs: Path, shell: Shell, tmp_path: Path
) -> None:
    code, _, _ = shell("report", "--run", runs / "b", "--out", tmp_path / "new" / "page.html")
    assert code == 0
    assert "<h1>OK</h1>" in (tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert [path.name for path in (runs / "b" / "audit").iterdir()] == ["findings.json"]


def test_a_defense_is_named_with_what_it_is_made_of() -> None:
    def named(**section: object) -> str | None:
        return paper_tables._setting({"defense": section})["defense"]

    assert named(name="igpp", epsilon=1.0) == "igpp"
    assert named(name="vpp", partition={"name": "random"}) == "vpp (random)"
    assert named(name="vpdr", partition={"name": "gumbel", "once": True}) == "vpdr (gumbel once)"
    assert named(name="dcr", release={"name": "vpp", "partition": {"name": "oracle"}}) == "dcr (vpp (oracle))"
    assert paper_tables._setting({})["defense"] is None


# ---------------------------------------------------------------------- the same runs under two names


def test_attacks_on_copied_runs_count_once(runs: Path, shell: Shell) -> None:
    shutil.copytree(runs / "a_1", runs.parent / "copy")
    alone = json.loads(shell("table", "attacks", runs / "a_1", "--format", "json")[1])
    both = ("table", "attacks", runs / "a_1", runs.parent / "copy")
    code, out, _ = shell(*both, "--format", "json")
    assert (code, json.loads(out)) == (0, alone)
    for form in ("md", "tex"):
        shown = shell(*both, "--format", form)[1].replace(r"\_", "_")
        assert (
            f"{runs.parent / 'copy'}: frozen-none is the same runs as in {runs / 'a_1'} and counts once."
            in shown
        )
        assert "frozen-local is the same" not in shown, "nothing was left out of a cell without attacks"


def test_what_only_the_second_audit_of_the_same_runs_found_stays(
    runs: Path, findings: Findings, shell: Shell
) -> None:
    cell = next(c for c in findings.cells if c.name == "frozen-none")
    other = replace(
        made.attack("cosine", np.random.default_rng(9), 50, 0.3, None, tier="public"), attack="cosine"
    )
    again = replace(cell.taken[1], adjusted_p=0.25)  # in another family of tests
    part = made.findings(cells=(replace(cell, taken=(other, again)),))
    findings_file.write(runs / "part" / "audit" / "findings.json", part)
    found = rows(shell("table", "attacks", runs / "a_1", runs / "part", "--format", "csv")[1])
    mine = [row for row in found if row["run"] == (runs / "part").as_posix()]
    assert [(row["cell"], row["attack"]) for row in mine] == [("frozen-none", "cosine")]
    assert len(found) == sum(len(c.taken) for c in findings.cells) + 1


def test_audits_that_share_some_runs_are_refused(runs: Path, findings: Findings, shell: Shell) -> None:
    known = {name: dict(run) for name, run in findings.provenance["runs"].items()}  # type: ignore[attr-defined]
    known["frozen-none"]["ledger_heads"] = [*known["frozen-none"]["ledger_heads"][:2], "0" * 64]
    other = replace(findings, provenance={**findings.provenance, "runs": known})
    findings_file.write(runs / "other" / "audit" / "findings.json", other)
    code, out, err = shell("table", "attacks", runs / "a_1", runs / "other")
    assert (code, out) == (2, "")
    said = f"{runs / 'a_1'} and {runs / 'other'} share 2 of the runs of cell frozen-none, and each run may count once"
    assert said in " ".join(err.split())
