"""``privkit table``: one table over several runs, in the format that a paper or a script reads."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from reports.table import Table
    from reports.utility_cells import UtilityCell


class Kind(StrEnum):
    """Which table."""

    ATTACKS = "attacks"
    UTILITY = "utility"
    DEFENSES = "defenses"
    GENERALIZATION = "generalization"
    FRONTIER = "frontier"


class Format(StrEnum):
    """How it is written: Markdown, CSV, LaTeX for booktabs, JSON; CSV and JSON keep full precision."""

    MD = "md"
    CSV = "csv"
    TEX = "tex"
    JSON = "json"


class Source(StrEnum):
    """Whose published numbers are printed beside measured ones."""

    PAPER = "paper"


def table(
    kind: Kind = typer.Argument(..., help="What the table is about."),
    runs: list[Path] = typer.Argument(
        ...,
        help="Audited folders; of utility and generalization, trained ones; a pattern such as 'runs/*' is expanded.",
    ),
    as_format: Format = typer.Option(Format.MD, "--format", help="Markdown, CSV, LaTeX (booktabs) or JSON."),
    against: str | None = typer.Option(
        None,
        "--against",
        help="Utility: what each cell is compared with: igpp (default), none, local_only or a cell.",
    ),
    percent: bool = typer.Option(
        False,
        "--percent",
        help="Accuracies in percent; CSV and JSON keep shares, with the printed texts beside them.",
    ),
    beside: Source | None = typer.Option(
        None,
        "--beside",
        help="Print published numbers too, marked as such: of VPDR (utility) or FedOT (generalization).",
    ),
    figures: Path | None = typer.Option(
        None,
        "--figures",
        help="Defenses and frontier: a folder for the figures too, each as PNG, SVG and PDF.",
    ),
) -> None:
    """Print one table over several runs. One row per run and cell, or per run, cell and attack."""
    from privkit.errors import InputError

    folders = expanded(runs)
    if kind in (Kind.ATTACKS, Kind.DEFENSES, Kind.FRONTIER) and (against is not None or percent or beside):
        raise InputError(
            "--against, --percent and --beside are about accuracy; leave them out, or ask for privkit table utility."
        )
    if kind not in (Kind.DEFENSES, Kind.FRONTIER) and figures is not None:
        raise InputError(
            "--figures is about defenses of the gradient lab and frontiers; leave it out, or ask for privkit table "
            "defenses or frontier."
        )
    if kind is Kind.GENERALIZATION and against is not None:
        raise InputError("--against compares cells of privkit table utility; leave it out, or ask for that.")
    match kind:
        case Kind.ATTACKS:
            made = _attacks(folders)
        case Kind.UTILITY:
            made = _utility(folders, against, beside, percent=percent)
        case Kind.DEFENSES:
            made = _defenses(folders, figures)
        case Kind.FRONTIER:
            made = _frontier(folders, figures)
        case Kind.GENERALIZATION:
            made = _generalization(folders, beside, percent=percent)
    texts = {Format.MD: made.markdown, Format.CSV: made.csv, Format.TEX: made.latex, Format.JSON: made.json}
    typer.echo(texts[as_format]().rstrip("\n"))


def _attacks(folders: list[Path]) -> "Table":
    from reports import findings_file, paper_tables

    return paper_tables.attacks([(run.as_posix(), findings_file.of_run(run)) for run in folders])


def _defenses(folders: list[Path], figures: Path | None) -> "Table":
    from reports import defense_table, findings_file

    made, cells = defense_table.defenses([(run.as_posix(), findings_file.of_run(run)) for run in folders])
    if figures is not None:
        from reports import paper_figures

        for file in paper_figures.write(cells, figures):
            typer.echo(f"Figure: {file}", err=True)
    return made


def _frontier(folders: list[Path], figures: Path | None) -> "Table":
    from functools import partial

    from reports import findings_file, frontier_table

    made, cells = frontier_table.frontier_table(
        [(run.as_posix(), findings_file.of_run(run)) for run in folders]
    )
    if figures is not None:
        from reports import paper_figures
        from reports.figures import frontier

        for file in paper_figures.write_one("frontier", partial(frontier.draw, cells), figures):
            typer.echo(f"Figure: {file}", err=True)
    return made


def _utility(folders: list[Path], against: str | None, beside: Source | None, *, percent: bool) -> "Table":
    from reports.utility_once import once
    from reports.utility_published import published
    from reports.utility_table import utility

    cells, said = once([cell for folder in folders for cell in _cells(folder)])
    rows = published() if beside is Source.PAPER else []
    return utility(
        cells, against="igpp" if against is None else against, published=rows, percent=percent, said=said
    )


def _generalization(folders: list[Path], beside: Source | None, *, percent: bool) -> "Table":
    from privkit import store
    from privkit.audit.cells import cells
    from privkit.errors import InputError
    from reports.generalization import generalizations
    from reports.generalization_published import published
    from reports.generalization_table import generalization_table

    found = []
    for folder in folders:
        named = [(cell.name, cell.runs) for cell in cells(store.find(folder))]
        found += generalizations(folder.as_posix(), named)
    if not found:
        raise InputError(
            f"no run in {', '.join(map(str, folders))} holds out a domain; train a study whose cells set held_out, "
            "such as configs/fedot.yaml."
        )
    return generalization_table(found, published=published() if beside else (), percent=percent)


def _cells(folder: Path) -> "list[UtilityCell]":
    """Return the cells of a folder of runs, with its audit if it has one; or those of an audit alone."""
    from privkit import store
    from privkit.audit.cells import cells
    from privkit.errors import InputError
    from reports import findings_file, utility_cells

    store.refuse_no_folder(folder)
    if not any(folder.rglob("run.json")):
        if not any(folder.rglob(findings_file.NAME)):
            raise InputError(
                f"{folder} holds no run; train one with `privkit train CONFIG --out {folder}`, or give another folder."
            )
        return utility_cells.of_findings(folder.as_posix(), findings_file.of_run(folder))
    audited = (folder / "audit" / findings_file.NAME).is_file()
    findings = findings_file.of_run(folder) if audited else None
    return [
        utility_cells.of_runs(folder.as_posix(), cell.name, cell.runs, findings)
        for cell in sorted(cells(store.find(folder)), key=lambda cell: utility_cells.by_number(cell.name))
    ]


def expanded(runs: list[Path]) -> list[Path]:
    """Return folders with patterns expanded, for shells that leave that to us; each folder once, by its first name."""
    import glob

    found: list[Path] = []
    for run in runs:
        matches = [run] if run.exists() else [Path(match) for match in sorted(glob.glob(str(run)))]
        found += [match for match in matches if match.is_dir()] or [run]
    return list({run.resolve(): run for run in reversed(found)}.values())[::-1]
