"""``privkit scores``: what attacks found whose scores were made elsewhere, and which of them can be told apart."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from reports.scores_judged import JudgedFile


class Format(StrEnum):
    """How it is written instead of for a terminal: Markdown, CSV at full precision, LaTeX for booktabs."""

    MD = "md"
    CSV = "csv"
    TEX = "tex"


def scores(
    files: list[Path] = typer.Argument(
        ...,
        help="Files of scores, one evaluation each (docs/scores.md); a pattern such as 'a/*.json' is expanded.",
    ),
    pairs: bool = typer.Option(
        False, "--pairs", help="One row per pair of attacks instead of one per attack."
    ),
    unpaired: bool = typer.Option(
        False, "--unpaired", help="Compare attacks as if each had scored candidates of its own."
    ),
    as_format: Format | None = typer.Option(
        None, "--format", help="Markdown, CSV or LaTeX (booktabs) instead of a terminal's table."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, with attacks and pairs."),
) -> None:
    """Judge scores that were made elsewhere. Each attack with intervals; and which differences are within noise.

    Directions are declared by the file or its format, never guessed. Exit 0 judged, 2 bad input.
    """
    from privkit.errors import InputError
    from privkit.scorefiles import _open
    from reports import scores_tables
    from reports.scores_judged import judge

    if as_json and (as_format is not None or pairs):
        raise InputError("--json prints attacks and pairs alike; leave out --format and --pairs.")
    found = [judge(path.as_posix(), *_open.read(path), unpaired=unpaired) for path in expanded(files)]
    if as_json:
        import json

        typer.echo(json.dumps(scores_tables.document(found), allow_nan=False, ensure_ascii=False))
    elif as_format is None:
        _show(found, pairs=pairs)
    else:
        table = scores_tables.pairs(found) if pairs else scores_tables.attacks(found)
        texts = {Format.MD: table.markdown, Format.CSV: table.csv, Format.TEX: table.latex}
        typer.echo(texts[as_format]().rstrip("\n"))


def _show(found: "Sequence[JudgedFile]", *, pairs: bool) -> None:
    from reports import scores_tables, terminal

    console = terminal.console()
    title = "Differences between attacks" if pairs else "Attacks"
    table = scores_tables.pairs(found) if pairs else scores_tables.attacks(found)
    console.print(terminal.fitting(title, table, console), "")
    for note in table.notes:
        console.print(note, highlight=False)


def expanded(files: Sequence[Path]) -> list[Path]:
    """Return files with patterns expanded, for shells that leave that to us; each file once, by its first name."""
    import glob

    found: dict[Path, Path] = {}
    for file in files:
        matches = [] if file.exists() else [Path(match) for match in sorted(glob.glob(str(file)))]
        for match in matches or [file]:
            found.setdefault(match.resolve(), match)
    return list(found.values())
