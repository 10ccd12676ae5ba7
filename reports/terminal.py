"""An audit on a terminal."""

import os
import sys
from collections.abc import Collection

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from reports import (
    assumption_tables,
    audit_files,
    audit_table,
    defense_sentences,
    defense_table,
    gains,
)
from reports.findings import Findings, Verdict
from reports.table import Table

_UNBOUNDED = 1000
_STYLES = {
    Verdict.OK: "bold green",
    Verdict.VIOLATION: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.NOT_COVERED: "bold magenta",
}


def console() -> Console:
    """Return standard output as a console; where it is no terminal, as wide as anything, or as COLUMNS says."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=_UNBOUNDED)


def show(findings: Findings, console: Console) -> None:
    """Print an audit, verdict last, where the eye is; a narrow terminal gets fewer columns."""
    defenses = defense_table.of_findings(findings).printed()
    for title, table in (
        ("Promised, and what it cost", audit_table.cells(findings)),
        ("Broken assumptions, each priced on its own", assumption_tables.broken(findings)),
        ("Taken", audit_table.attacks(findings)),
        ("What each defense stops", defenses),
        ("What malicious servers gained", gains.gains(findings)),
    ):
        if table.rows:
            console.print(fitting(title, table, console), "")
    for note in (*defenses.notes, *audit_files.notes(findings)):
        console.print(note, style="dim", highlight=False)
    for sentence in defense_sentences.of_audit(findings):
        console.print(sentence, highlight=False)
    for cell in findings.cells:
        verdict = Text(cell.verdict.value, style=_STYLES[cell.verdict])
        console.print(Text.assemble(f"{cell.name}: ", verdict, f"  {'; '.join(cell.reasons)}"))
    console.print(
        Text.assemble(
            ("Verdict: " + findings.verdict.value, _STYLES[findings.verdict]),
            f"  ({audit_files.tally(findings)})",
        )
    )


def fitting(title: str, table: Table, console: Console) -> Grid:
    """Return as many columns as there is room for, the most important first, in their own order."""
    shown = {column.key for column in table.columns if not column.rank}
    for column in sorted(table.columns, key=lambda c: c.rank):
        wider = _grid(title, table, shown | {column.key})
        if Measurement.get(console, console.options.update(width=_UNBOUNDED), wider).maximum <= console.width:
            shown.add(column.key)
    grid = _grid(title, table, shown)
    hidden = [column.title for column in table.columns if column.key not in shown]
    if hidden:
        grid.caption = f"not shown, for want of width: {', '.join(hidden)}"
    return grid


def _grid(title: str, table: Table, shown: Collection[str]) -> Grid:
    columns = [column for column in table.columns if column.key in shown]
    grid = Grid(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        grid.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*(column.show(row.get(column.key)) for column in columns))
    return grid
