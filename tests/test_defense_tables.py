"""Tables, sentences and figures about defenses of the gradient lab, from findings made by hand."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from privkit.errors import InputError
from reports import audit_files, defense_cells, defense_table, findings_file, paper_figures
from reports.defense_sentences import of_audit
from reports.figures import by_strength, privacy_utility
from reports.findings import Findings, Taken
from tests import made
from tests.made_defenses import cell, findings, sweep, taken
from tests.test_page import Page
from tests.test_tables_cli import Shell, shell

__all__ = ["shell"]  # a fixture

MARKS = "os^DvPX"
NOTHING = {"name": "none"}


def rows(table: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))


# ---------------------------------------------------------------------- the table


def test_rows_come_by_setting_defense_and_strength_and_undefended_ones_first():
    table, _ = defense_table.defenses([("b", sweep(tuning={"name": "lora"})), ("a", sweep())])
    named = [(row["tuning"], row["setting"] or row["defense"]) for row in table.rows]
    one = ["none", "noise multiplier 1", "noise multiplier 2", "rank 2", "rank 4", "rank 16"]
    assert named == [(tuning, setting) for tuning in ("adapter", "lora") for setting in one]


def test_every_number_is_that_of_the_attack_with_the_largest_auc_of_its_family():
    audit = sweep()
    table, _ = defense_table.defenses([("a", audit)])
    of = {found.name: {t.attack: t for t in found.taken} for found in audit.cells}
    for row in rows(table):
        attacks = of[row["cell"]]
        for family, attack in (
            ("projection", "projres"),
            ("rival", "gradient_cosine"),
            ("adaptive", "matched_filter"),
        ):
            found = attacks[attack].compared
            assert found is not None
            assert row[f"{family}_attack"] == attack
            numbers = [found.auc.value, found.auc.low, found.auc.high, found.auc.level]
            assert [float(row[f"{family}_{key}"]) for key in ("auc", "low", "high", "level")] == numbers
            assert int(row[f"{family}_tried"]) == found.tried


def test_the_larger_of_two_is_best_and_what_gave_no_number_still_counts_as_tried():
    tried = [taken("matched_filter", 0.6), taken("joint_decoding", 0.8)]
    table = defense_table.of_findings(findings({"x": (NOTHING, cell("x", *tried))}))
    (row,) = rows(table)
    assert (row["adaptive_attack"], row["adaptive_tried"]) == ("joint_decoding", "2")
    assert float(row["adaptive_level"]) == pytest.approx(0.975)
    assert row["projection_auc"] == row["rival_attack"] == ""
    known = " ".join(table.notes)
    assert (
        "the largest AUC of 2 (joint_decoding, matched_filter); its interval allows for that choice" in known
    )
    assert "ProjRes is" not in known, "nobody chose among one"


def test_a_number_of_attacks_makes_an_interval_wider_and_leaves_the_auc():
    one, other = (taken("matched_filter", 0.7).compared, taken("matched_filter", 0.7).auc)
    assert one is not None
    assert other is not None
    assert one.auc.value == other.value
    assert None not in (one.auc.low, other.low, one.auc.high, other.high)
    assert one.auc.low < other.low < other.high < one.auc.high  # type: ignore[operator]


@pytest.mark.parametrize(
    ("cost", "data", "over", "interval"),
    [
        ({"seeds": {0: 0.6, 1: 0.7}}, {}, "seeds", True),
        ({}, {}, "clients", True),
        ({}, {"test.a": "1", "test.b": "1", "test.c": "2"}, "clients", True),
        (
            {"accuracy": dict.fromkeys("abc", 0.7)},
            dict.fromkeys(("test.a", "test.b", "test.c"), "1"),
            "clients",
            False,
        ),
    ],
    ids=["seeds", "own test records", "two sets of test records", "one set for all"],
)
def test_accuracies_are_over_seeds_or_over_sets_of_test_records(cost, data, over, interval):
    audit = findings({"x": (NOTHING, cell("x", taken("projres", 0.9), **cost))})
    audit.provenance["runs"]["x"]["data"] |= data  # type: ignore[index]
    (one,) = defense_cells.of_findings("", audit)
    assert one.accuracy is not None
    assert one.accuracy_over == over
    assert (one.accuracy.low is not None) == interval
    assert one.accuracy.n == {"seeds": 2, "clients": 3 - max(0, len(data) - len(set(data.values())))}[over]
    said = " ".join(defense_table.of_findings(audit).notes)
    assert ("t intervals over " + over in said) == interval
    assert ("one set of test records" in said) == (not interval)


def test_settings_beside_the_strength_make_another_defense():
    cells = {
        "plain": ({"name": "fisguard", "rank": 4}, cell("plain", taken("projres", 0.5))),
        "random": ({"name": "fisguard", "rank": 4, "basis": "random"}, cell("random", taken("projres", 0.5))),
        "both": (
            {"name": "dpsgd", "noise_multiplier": 0.5, "fisguard": {"rank": 4}},
            cell("both", taken("projres", 0.5)),
        ),
    }
    found = defense_cells.of_findings("", findings(cells))
    assert [one.title for one in found] == [
        "dpsgd (fisguard rank 4, noise multiplier 0.5)",
        "fisguard (rank 4)",
        "fisguard (basis random, rank 4)",
    ]
    assert len({one.group for one in found}) == 1


def test_the_same_runs_count_once_and_runs_of_something_else_are_refused(tmp_path):
    table, cells = defense_table.defenses([("a", sweep()), ("copy", sweep())])
    assert len(table.rows) == len(cells) == 6
    assert "copy: none is the same runs as in a and counts once." in table.notes
    with pytest.raises(InputError, match="demo has no run that tunes a transformer") as refused:
        defense_table.defenses([("demo", made.findings())])
    assert "\n" not in str(refused.value)


# ---------------------------------------------------------------------- one sentence per defense


def sentence(*tried: Taken, bare: Taken | None = None, defense: Mapping[str, Any] | None = None) -> str:
    """Return what is said of one cell, beside an undefended one."""
    cells = {"x": (dict(defense or {"name": "fisguard", "rank": 8}), cell("x", *tried))}
    if bare is not None:
        cells["none"] = (NOTHING, cell("none", bare))
    (said,) = of_audit(findings(cells))
    return said


def number(one: Taken) -> str:
    assert one.compared is not None
    auc = one.compared.auc
    return f"{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]"


UNDEFENDED = taken("projres", 0.999)
BLIND, TIED, SEES = taken("projres", 0.5), taken("projres", None), taken("projres", 0.999)
FILTER, NO_FILTER, COSINE = (
    taken("matched_filter", 0.9),
    taken("matched_filter", 0.5),
    taken("gradient_cosine", 0.5),
)


@pytest.mark.parametrize(
    ("tried", "wanted"),
    [
        (
            (BLIND, COSINE, FILTER),
            f"fisguard (rank 8) leaves ProjRes at {number(BLIND)}, no better than chance, but matched filter still "
            f"tells members apart with AUC {number(FILTER)}.",
        ),
        (
            (BLIND, COSINE, NO_FILTER),
            f"fisguard (rank 8) leaves ProjRes at {number(BLIND)}, no better than chance, and the best of 2 other "
            f"attacks, matched filter, reaches {number(NO_FILTER)}, no better than chance.",
        ),
        (
            (TIED, FILTER),
            "fisguard (rank 8) leaves ProjRes no information, as all records get one score, but matched filter still "
            f"tells members apart with AUC {number(FILTER)}.",
        ),
        (
            (SEES, COSINE, FILTER),
            f"fisguard (rank 8) does not stop ProjRes, which tells members apart with AUC {number(SEES)}, nor "
            f"matched filter, with AUC {number(FILTER)}.",
        ),
        (
            (SEES, COSINE),
            f"fisguard (rank 8) does not stop ProjRes, which tells members apart with AUC {number(SEES)}, but gradient "
            f"cosine reaches {number(COSINE)}, no better than chance.",
        ),
        (
            (FILTER,),
            f"fisguard (rank 8) does not stop matched filter, which tells members apart with AUC {number(FILTER)}.",
        ),
        ((BLIND,), f"fisguard (rank 8) leaves ProjRes at {number(BLIND)}, no better than chance."),
        ((), "fisguard (rank 8): no attack gave a number."),
        (
            (Taken(attack="projres", tier="public", family="projection", reason="no"),),
            "fisguard (rank 8): no attack gave a number.",
        ),
    ],
)
def test_each_case_is_said_in_one_sentence_of_measured_numbers(tried, wanted):
    assert sentence(*tried, bare=UNDEFENDED) == wanted


def test_what_a_defense_weakens_and_does_not_stop_is_said_with_what_it_was():
    weak = taken("projres", 0.65)
    said = sentence(weak, FILTER, bare=UNDEFENDED)
    assert said == (
        f"fisguard (rank 8) takes ProjRes from {number(UNDEFENDED)} to {number(weak)}, still better than chance, and "
        f"matched filter tells members apart with AUC {number(FILTER)}."
    )
    assert "does not stop ProjRes" in sentence(weak, bare=weak)


def test_a_defense_is_given_no_credit_for_what_nobody_could_do_before():
    assert "no better than chance (as it is without a defense), but" in sentence(BLIND, FILTER, bare=BLIND)
    assert "without a defense" not in sentence(BLIND, FILTER)


def test_the_undefended_cell_has_no_sentence():
    assert of_audit(findings({"none": (NOTHING, cell("none", UNDEFENDED))})) == []
    assert of_audit(made.findings()) == []


def by_chance(one: Taken, p: float) -> Taken:
    assert one.compared is not None
    return replace(one, compared=replace(one.compared, chance=p))


def test_a_test_that_its_interval_contradicts_is_said_with_its_p_value():
    assert "no better than chance (Holm p 0.400)" in sentence(BLIND, by_chance(FILTER, 0.2))
    assert "still better than chance (Holm p 0.001)" in sentence(by_chance(BLIND, 0.001), bare=UNDEFENDED)


@pytest.mark.parametrize("p", [1.0, 1e-5])
def test_what_noise_proves_is_said_with_whether_anything_is_above_it(p):
    limit = float(norm.cdf(1 / 2**0.5))
    above = taken("matched_filter", 0.9, ceiling=limit, p=p)
    said = sentence(
        replace(TIED, auc_ceiling=limit), above, defense={"name": "dpsgd", "noise_multiplier": 1.0}
    )
    assert said.startswith("dpsgd (noise multiplier 1) leaves ProjRes no information")
    if p == 1.0:
        assert said.endswith("; no attack is above the ceiling 0.760 that its noise proves.")
    else:
        wanted = f"; matched filter is above the ceiling 0.760 that its noise proves with AUC {number(above)}"
        assert said.endswith(f"{wanted} (adjusted p 1e-05).")


def test_many_attacks_without_skill_are_seldom_said_to_have_any():
    """Holm over the attacks of a cell: one in twenty cells at most has a sentence that is wrong."""
    rng = np.random.default_rng(0)
    said = [sentence(*(by_chance(COSINE, float(p)) for p in rng.random(6))) for _ in range(60)]
    assert sum("tells members apart" in one for one in said) <= 8


# ---------------------------------------------------------------------- figures


def points(axes: Axes, marks: str = MARKS) -> list[tuple[float, float]]:
    """Return where a panel has marks, lines left out."""
    drawn = [
        (np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata()))
        for line in axes.lines
        if line.get_marker() in tuple(marks)
    ]
    return [(float(x), float(y)) for xs, ys in drawn for x, y in zip(xs, ys, strict=True)]


def counts(figure: Figure | None, marks: str = MARKS) -> list[int]:
    """Return the number of marks in each panel."""
    assert figure is not None
    return [len(points(axes, marks)) for axes in figure.axes]


def test_every_attack_and_strength_is_a_mark_and_every_ceiling_a_line():
    _, cells = defense_table.defenses([("a", sweep())])
    drawn = privacy_utility.draw(cells)
    assert counts(drawn) == [6, 6, 6]
    assert counts(drawn, "_") == [2, 2, 2]
    assert counts(by_strength.draw_auc(cells)) == [3 * 6]
    _, both = defense_table.defenses([("a", sweep()), ("b", sweep(tuning={"name": "lora"}))])
    assert counts(by_strength.draw_auc(both)) == [3 * 6, 3 * 6]
    assert counts(by_strength.draw_accuracy(both)) == [6, 6]


def test_marks_are_where_the_numbers_are():
    _, cells = defense_table.defenses([("a", sweep())])
    drawn = privacy_utility.draw(cells)
    assert drawn is not None
    accuracies = [one.accuracy.mean for one in cells if one.accuracy]
    for axes, family in zip(drawn.axes, defense_cells.FAMILIES, strict=True):
        wanted = zip(accuracies, (one.best[family].value for one in cells), strict=True)
        assert sorted(points(axes)) == sorted(wanted)


def test_without_numbers_there_is_no_figure(tmp_path):
    nothing = defense_cells.of_findings("", findings({"x": (NOTHING, cell("x"))}))
    assert privacy_utility.privacy_utility(nothing) is None
    assert by_strength.auc(nothing) is None
    assert by_strength.accuracy([]) is None
    assert [path.name for path in paper_figures.write(nothing, tmp_path)] == [
        f"accuracy-by-strength.{kind}" for kind in ("png", "svg", "pdf")
    ]


# ---------------------------------------------------------------------- what a reader runs


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    findings_file.write(tmp_path / "lab" / "audit" / "findings.json", sweep())
    findings_file.write(tmp_path / "demo" / "audit" / "findings.json", made.findings())
    return tmp_path


def test_one_command_prints_the_table_and_writes_the_figures(audited: Path, shell: Shell) -> None:
    figures = audited / "figures"
    code, out, err = shell("table", "defenses", audited / "lab", audited / "demo", "--figures", figures)
    assert code == 0
    assert "| fisguard | rank 16 |" in out
    assert "Best adaptive is the attack with the largest AUC of 2" in out
    files = sorted(path.name for path in figures.iterdir())
    assert files == sorted(
        f"{name}.{kind}" for name in paper_figures.FIGURES for kind in ("png", "svg", "pdf")
    )
    assert err.count("Figure: ") == len(files)
    for path in figures.iterdir():
        start = path.read_bytes()[:8]
        assert start.startswith({"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[path.suffix[1:]])
        if path.suffix == ".svg":
            text = path.read_text(encoding="utf-8")
            assert "#0072b2" in text
            assert "#0101" not in text
            assert "#0202" not in text


def test_every_format_has_every_row_and_its_sentence(audited: Path, shell: Shell) -> None:
    document = json.loads(shell("table", "defenses", audited / "lab", "--format", "json")[1])
    assert len(document["rows"]) == 6
    said = {row["cell"]: row["sentence"] for row in document["rows"]}
    assert said["none"] == ""
    assert sorted(filter(None, said.values())) == sorted(of_audit(sweep()))
    assert shell("table", "defenses", audited / "lab", "--format", "tex")[1].count(r" \\") == 7


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("defenses", "demo"), "demo has no run that tunes a transformer"),
        (("defenses", "lab", "--percent"), "--percent and --beside are about accuracy"),
        (("attacks", "lab", "--figures", "x"), "--figures is about defenses of the gradient lab"),
    ],
)
def test_what_makes_no_sense_is_refused(
    audited: Path, shell: Shell, monkeypatch, arguments, complaint
) -> None:
    monkeypatch.chdir(audited)
    code, out, err = shell("table", *arguments)
    assert (code, out) == (2, "")
    assert complaint in " ".join(err.split())
    assert not (audited / "x").exists()


def test_the_page_and_the_files_of_an_audit_have_table_sentences_and_figures(tmp_path: Path) -> None:
    audit: Findings = sweep()
    audit_files.write(audit, tmp_path)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    read = Page(html)
    assert len(read.tables["defenses"]) == 7
    text = "".join(read.text)
    for said in of_audit(audit):
        assert said in text
        assert said in (tmp_path / "audit.md").read_text(encoding="utf-8")
    assert html.count('class="defenses"') == 3
    assert (
        len(rows(defense_table.of_findings(audit)))
        == len((tmp_path / "defenses.csv").read_text().splitlines()) - 1
    )
    assert not defense_table.of_findings(made.findings()).rows
