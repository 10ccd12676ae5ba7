"""An audit on a terminal."""

import sys

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from reports import assumption_tables, audit_files, audit_table
from reports.findings import Findings, Verdict
from reports.table import Column, Table

_WIDE = 160
_STYLES = {
    Verdict.OK: "bold green",
    Verdict.VIOLATION: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.NOT_COVERED: "bold magenta",
}


def console() -> Console:
    """Return standard output as a console; where it is no terminal, as wide as the tables are."""
    return Console() if sys.stdout.isatty() else Console(width=_WIDE)


def show(findings: Findings, console: Console) -> None:
    """Print an audit, verdict last, where the eye is; a narrow terminal gets fewer columns."""
    for title, table in (
        ("Promised, and what it cost", audit_table.cells(findings)),
        ("Broken assumptions, each priced on its own", assumption_tables.broken(findings)),
        ("Taken", audit_table.attacks(findings)),
    ):
        if not table.rows:
            continue
        grid = _grid(title, table, table.columns)
        if Measurement.get(console, console.options.update(width=_WIDE * 2), grid).maximum > console.width:
            grid = _grid(title, table, tuple(c for c in table.columns if not c.wide))
            hidden = ", ".join(c.title for c in table.columns if c.wide)
            grid.caption = f"not shown, for want of width: {hidden}"
        console.print(grid, "")
    for note in audit_files.notes(findings):
        console.print(note, style="dim", highlight=False)
    for cell in findings.cells:
        verdict = Text(cell.verdict.value, style=_STYLES[cell.verdict])
        console.print(Text.assemble(f"{cell.name}: ", verdict, f"  {'; '.join(cell.reasons)}"))
    console.print(
        Text.assemble(
            ("Verdict: " + findings.verdict.value, _STYLES[findings.verdict]),
            f"  ({audit_files.tally(findings)})",
        )
    )


def _grid(title: str, table: Table, columns: tuple[Column, ...]) -> Grid:
    grid = Grid(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        grid.add_column(column.title, justify="right" if column.right else "left", no_wrap=True)
    for row in table.rows:
        grid.add_row(*(column.show(row.get(column.key)) for column in columns))
    return grid
