"""``privkit table frontier``: accuracy against the strongest attack, from findings made by hand."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.statistics.seeds import over_seeds
from reports import audit_files, frontier_table
from reports.figures import frontier as figure
from reports.findings import Findings
from reports.frontier_cells import FrontierCell, frontier, of_audits
from tests import made
from tests.made_defenses import cell, findings, sweep, taken
from tests.test_tables_cli import Shell, shell

__all__ = ["shell"]  # a fixture

NONE, DPSGD = {"name": "none"}, {"name": "dpsgd", "noise_multiplier": 2.0}


def two(accuracies: tuple[float, float], areas: tuple[float, float], **config: Any) -> Findings:
    made_of = zip(("a", "b"), (NONE, DPSGD), accuracies, areas, strict=True)
    return findings(
        {
            name: (defense, cell(name, taken("projres", area), seeds={0: accuracy, 1: accuracy}))
            for name, defense, accuracy, area in made_of
        },
        **config,
    )


def rows(audit: Findings) -> dict[str, dict[str, str]]:
    table, _ = frontier_table.frontier_table([("r", audit)])
    return {row["cell"]: row for row in csv.DictReader(io.StringIO(table.csv()))}


def test_a_row_has_the_attack_with_the_largest_auc_and_its_own_interval():
    audit = findings({"x": (NONE, cell("x", taken("projres", 0.6), taken("matched_filter", 0.9)))})
    row = rows(audit)["x"]
    auc = audit.cells[0].taken[1].auc
    assert auc is not None
    assert (row["attack"], row["tried"]) == ("matched_filter", "2")
    assert [float(row[key]) for key in ("auc", "auc_low", "auc_high")] == [auc.value, auc.low, auc.high]


def test_canaries_and_those_who_have_more_than_a_server_are_no_strongest_attack():
    weak, strong = taken("projres", 0.6), taken("matched_filter", 0.95)
    for tier in ("design", "insider", "client"):
        audit = findings({"x": (NONE, cell("x", weak, replace(strong, tier=tier)))})
        assert (rows(audit)["x"]["attack"], rows(audit)["x"]["tried"]) == ("projres", "1")


def test_a_cell_that_another_beats_in_both_is_not_on_the_frontier_and_a_trade_is():
    better = rows(two((0.6, 0.7), (0.9, 0.6)))
    assert (better["a"]["on_frontier"], better["b"]["on_frontier"]) == ("", "yes")
    trade = rows(two((0.7, 0.6), (0.9, 0.6)))
    assert (trade["a"]["on_frontier"], trade["b"]["on_frontier"]) == ("yes", "yes")


def test_cells_of_other_data_beat_nobody():
    audits = [("r", two((0.6, 0.5), (0.9, 0.6))), ("s", two((0.9, 0.9), (0.55, 0.55), data={"name": "sst5"}))]
    cells, _ = of_audits(audits)
    assert {one.data for one in frontier(cells)} == {"vader", "sst5"}


def test_a_cell_that_sends_nothing_leaves_its_attacker_at_one_half():
    silent = replace(cell("local", seeds={0: 0.8}), taken=())
    silent = replace(silent, cost=replace(silent.cost, bytes_per_round=0.0))
    row = rows(findings({"local": (NONE, silent), "x": (NONE, cell("x", taken("projres", 0.9)))}))["local"]
    assert (row["attack"], float(row["auc"]), row["on_frontier"]) == ("nothing is sent", 0.5, "yes")


def test_what_was_not_measured_is_no_point():
    unknown = cell("x", replace(taken("projres", 0.9), auc=None))
    unmeasured = replace(unknown, name="y", cost=replace(unknown.cost, accuracy=None))
    audit = findings({"x": (NONE, unknown), "y": (NONE, unmeasured)})
    table, cells = frontier_table.frontier_table([("r", audit)])
    assert [row["on_frontier"] for row in table.rows] == ["", ""]
    assert frontier(cells) == []
    assert figure.draw(cells) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8))
def test_of_any_points_those_are_unbeaten_that_a_plain_search_finds(points: list[tuple[int, int]]):
    cells = [point(i, accuracy / 10, 0.5 + auc / 20) for i, (accuracy, auc) in enumerate(points)]
    unbeaten = {
        i
        for i, (a, u) in enumerate(points)
        if not any(b >= a and v <= u and (b, v) != (a, u) for b, v in points)
    }
    assert {int(one.found.name) for one in frontier(cells)} == unbeaten


def point(number: int, accuracy: float, area: float) -> FrontierCell:
    known = taken("projres", 0.7)
    assert known.auc is not None
    strongest = replace(known, auc=replace(known.auc, value=area))
    found = cell(str(number), strongest)
    found = replace(found, cost=replace(found.cost, accuracy=over_seeds([accuracy])))
    (one,), _ = of_audits([("r", findings({str(number): (NONE, found)}))])
    return one


def test_the_figure_has_a_panel_per_data_set_and_a_ceiling_where_one_was_proved():
    _, cells = frontier_table.frontier_table([("r", sweep()), ("s", sweep(data={"name": "sst5"}))])
    drawn = figure.draw(cells)
    assert drawn is not None
    assert [axes.get_title() for axes in drawn.axes] == ["sst5", "vader"]
    ceilings = [line for line in drawn.axes[0].lines if line.get_marker() == "_"]
    assert sorted(float(line.get_ydata()[0]) for line in ceilings) == [0.64, 0.76]  # pyright: ignore


def test_the_command_prints_every_system_and_writes_the_figure(shell: Shell, tmp_path: Path):
    audit_files.write(sweep(), tmp_path / "lab" / "audit")
    audit_files.write(made.findings(), tmp_path / "prototypes" / "audit")
    code, out, err = shell(
        "table", "frontier", tmp_path / "lab", tmp_path / "prototypes", "--figures", tmp_path
    )
    assert code == 0, err
    assert "minilm with adapter" in out
    assert "the same AUC is not the same harm" in out
    assert {path.name for path in tmp_path.glob("frontier.*")} == {
        f"frontier.{k}" for k in ("png", "svg", "pdf")
    }
    code, _, err = shell("table", "frontier", tmp_path / "lab", "--percent")
    assert code == 2
    assert "privkit table utility" in err


@pytest.mark.parametrize("kind", ["attacks", "utility"])
def test_figures_of_other_tables_are_refused(shell: Shell, tmp_path: Path, kind: str):
    code, _, err = shell("table", kind, tmp_path, "--figures", tmp_path)
    assert code == 2
    assert "privkit table defenses or frontier" in " ".join(err.split())
