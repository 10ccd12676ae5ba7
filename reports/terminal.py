"""An audit on a terminal."""

from rich.console import Console
from rich.table import Table as Grid

from reports import audit_files, audit_table
from reports.findings import Findings, Verdict
from reports.table import Table

_STYLES = {
    Verdict.OK: "bold green",
    Verdict.VIOLATION: "bold red",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.NOT_COVERED: "bold magenta",
}


def show(findings: Findings, console: Console) -> None:
    """Print an audit, verdict last, where the eye is."""
    console.print(_grid("Promised, and what it cost", audit_table.cells(findings)))
    console.print(_grid("Taken", audit_table.attacks(findings)))
    for note in audit_files.notes(findings):
        console.print(note, style="dim", highlight=False)
    for cell in findings.cells:
        console.print(f"{cell.name}: ", end="", highlight=False)
        console.print(cell.verdict.value, style=_STYLES[cell.verdict], end="")
        console.print(f"  {'; '.join(cell.reasons)}", highlight=False)
    console.print(f"Verdict: {findings.verdict.value}", style=_STYLES[findings.verdict])


def _grid(title: str, table: Table) -> Grid:
    grid = Grid(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in table.columns:
        grid.add_column(column.title, justify="right" if column.right else "left")
    for row in table.rows:
        grid.add_row(*table.cells(row))
    return grid
