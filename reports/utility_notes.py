"""A table that fits a page: what is the same in every row, or missing in all, is said once below it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.table import Column, Table
from reports.utility_cells import UtilityCell

_SAID_ONCE = (
    "run", "data", "model_text", "framework", "defense", "promised_text", "epsilon_text", "seeds",
)  # fmt: skip
"""Columns that describe a row, and that leave the table where all rows agree."""
_ALWAYS = ("cell", "avg_text")
_NOTHING = ("", "n/a")
_UNPROMISED = "the noise was made for it, and nothing is promised"
_PUBLISHED = ("published", "as published", *_NOTHING)
"""What a column says of a published row where it is about measured ones."""


@dataclass(frozen=True, kw_only=True)
class NotedTable(Table):
    """A table that says once below it what is the same in every row; CSV and JSON have every column.

    Attributes:
        said_once: keys of columns that leave the table where all rows agree.
    """

    said_once: tuple[str, ...] = _SAID_ONCE

    def markdown(self) -> str:
        """Return the table in GitHub's Markdown, and below it what is said once, a paragraph each."""
        return self.printed().markdown()

    def latex(self) -> str:
        """Return the table for the package booktabs, and below it what is said once, in small print."""
        return self.printed().latex()

    def printed(self) -> Table:
        """Return the columns that differ from row to row, with sentences about the others."""
        texts = {
            column.key: [column.show(row.get(column.key)) for row in self.rows] for column in self.columns
        }
        same = {c.key: value for c in self.columns if (value := self._same(c.key, texts[c.key])) is not None}
        missing = [c for c in self.columns if c.key not in _ALWAYS and set(texts[c.key]) <= set(_NOTHING)]
        gone = {*same, *(column.key for column in missing)}
        kept = tuple(column for column in self.columns if column.key not in gone)
        said = (*self._constant(same), *_missing(missing, self.rows), *self.notes)
        return Table(columns=kept, rows=self.rows, notes=said)

    def _same(self, key: str, texts: Sequence[str]) -> str | None:
        """Return what a column says of every measured row, if it says nothing else of published ones."""
        if key not in self.said_once:
            return None
        rows = list(zip(texts, self.rows, strict=True))
        measured = {text for text, row in rows if row.get("source", "measured") == "measured"}
        rest = {text for text, row in rows if row.get("source", "measured") != "measured"}
        (value, *others) = measured or {""}
        return value if not others and value not in _NOTHING and rest <= {value, *_PUBLISHED} else None

    def _constant(self, same: Mapping[str, str]) -> list[str]:
        if not same:
            return []
        titles = {column.key: column.title for column in self.columns}
        published = any(row.get("source") == "published" for row in self.rows)
        rows = "every measured row" if published else "every row"
        return [f"In {rows}: {'; '.join(f'{titles[key]} {value}' for key, value in same.items())}."]


def _missing(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not columns:
        return []
    measured = [row for row in rows if row.get("source", "measured") == "measured"]
    reasons = {str(row["reason"]) for row in measured if row.get("reason")}
    why = f" ({reasons.pop()})" if len(reasons) == 1 else " (reasons: --format json)" if reasons else ""
    return [f"Left out, as no row has them: {', '.join(column.title for column in columns)}{why}."]


def notes(cells: Sequence[UtilityCell], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return sentences on what a reader of a utility table must know: models, promises that are none, audits."""
    return [*_models(rows), *_broken(cells), *_unaudited(cells)]


def _models(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    meant: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["model_text"] != row["model"]:
            meant.setdefault(row["model_text"], {})[row["model"]] = None
    said = "; ".join(f"{short} = {' or '.join(full)}" for short, full in meant.items())
    return [f"Models: {said}."] if meant else []


def _broken(cells: Sequence[UtilityCell]) -> list[str]:
    named: dict[str, list[str]] = {}
    for cell in cells:
        for why in cell.broken or ([_UNPROMISED] if cell.promised is None and cell.epsilon else []):
            named.setdefault(why, []).append(cell.name)
    if not named:
        return []
    said = "; ".join(f"{why} ({_names(which, cells)})" for why, which in named.items())
    return [f"ε in brackets is no promise. {said}."]


def _unaudited(cells: Sequence[UtilityCell]) -> list[str]:
    which = [cell.name for cell in cells if cell.audited is None and cell.promised is not None]
    if not which:
        return []
    return [f"Not audited, so that the promised ε is untested: {_names(which, cells)}."]


def _names(which: Sequence[str], cells: Sequence[UtilityCell]) -> str:
    names = list(dict.fromkeys(which))
    if len(names) > 1 and len(which) == sum(cell.promised is not None for cell in cells):
        return "all cells that promise something"
    return ", ".join(names)
