"""``privkit table``: one table over several audits, in the format that a paper or a script reads."""

from enum import StrEnum
from pathlib import Path

import typer


class Kind(StrEnum):
    """Which table."""

    ATTACKS = "attacks"
    UTILITY = "utility"


class Format(StrEnum):
    """How it is written: Markdown, CSV, LaTeX for booktabs, JSON; CSV and JSON keep full precision."""

    MD = "md"
    CSV = "csv"
    TEX = "tex"
    JSON = "json"


def table(
    kind: Kind = typer.Argument(..., help="What the table is about."),
    runs: list[Path] = typer.Argument(..., help="Audited folders; a pattern such as 'runs/*' is expanded."),
    as_format: Format = typer.Option(Format.MD, "--format", help="Markdown, CSV, LaTeX (booktabs) or JSON."),
) -> None:
    """Print one table over several audits. One row per run, cell and attack (or per run and cell)."""
    from reports import findings_file, paper_tables

    audits = [(run.as_posix(), findings_file.of_run(run)) for run in expanded(runs)]
    made = (paper_tables.attacks if kind is Kind.ATTACKS else paper_tables.utility)(audits)
    texts = {Format.MD: made.markdown, Format.CSV: made.csv, Format.TEX: made.latex, Format.JSON: made.json}
    typer.echo(texts[as_format]().rstrip("\n"))


def expanded(runs: list[Path]) -> list[Path]:
    """Return folders with patterns expanded, for shells that leave that to us; each folder once."""
    import glob

    found: list[Path] = []
    for run in runs:
        matches = [run] if run.exists() else [Path(match) for match in sorted(glob.glob(str(run)))]
        found += [match for match in matches if match.is_dir()] or [run]
    return list(dict.fromkeys(found))
