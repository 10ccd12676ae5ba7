"""A table as a value, and its text in the formats people paste: Markdown, CSV, LaTeX, JSON."""

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports import latex

SCHEMA = 1


def _text(value: Any) -> str:
    return "n/a" if value is None else str(value)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: where its value is, what it is called, and how it reads.

    Attributes:
        key: of the value in a row.
        title: as printed.
        show: turns the value into text; machine formats keep the value itself.
        right: whether it is set flush right.
        rank: 0 is shown on any terminal; of the others, a narrow one leaves out the highest first.
        sort: key of the value that a reader's sorting goes by, where it is not ``key``.
    """

    key: str
    title: str
    show: Callable[[Any], str] = _text
    right: bool = False
    rank: int = 0
    sort: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of named values.

    Attributes:
        columns: in the order of printing.
        rows: a value per key; a missing key is n/a. Values must be plain (numbers, texts, ``None``).
        extra: keys that only the machine formats show.
        notes: sentences below the printed table; CSV and JSON have none.
    """

    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def cells(self, row: Mapping[str, Any]) -> list[str]:
        """Return one row as texts."""
        return [column.show(row.get(column.key)) for column in self.columns]

    def markdown(self) -> str:
        r"""Return the table in GitHub's Markdown, and its notes below it, a paragraph each.

        >>> print(Table(columns=(Column(key="a", title="A"),), rows=[{"a": "x|y"}]).markdown())
        | A |
        |---|
        | x\|y |
        """
        head = [column.title for column in self.columns]
        rule = ["---:" if column.right else "---" for column in self.columns]
        body = [[text.replace("|", "\\|") for text in self.cells(row)] for row in self.rows]
        lines = [f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(r)} |" for r in body)]
        return "\n\n".join(["\n".join(lines), *self.notes])

    def csv(self) -> str:
        """Return the table as CSV with every value at full precision; n/a is empty."""
        keys = self.keys()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(keys)
        for row in self.rows:
            writer.writerow(["" if row.get(key) is None else row[key] for key in keys])
        return text.getvalue()

    def latex(self) -> str:
        """Return the table in LaTeX, for the package booktabs, and its notes in small print; texts are escaped."""
        table = latex.tabular(
            [column.title for column in self.columns],
            [self.cells(row) for row in self.rows],
            right=[column.right for column in self.columns],
        )
        notes = [rf"\par{{\footnotesize {latex.escape(text)}\par}}" for text in self.notes]
        return "\n".join([table, *notes])

    def json(self) -> str:
        """Return the table as JSON with every value at full precision; what is not finite is null."""
        content = {"schema": SCHEMA, "columns": self.keys(), "rows": finite(self.records())}
        return json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as plain values, every key in each."""
        return [{key: row.get(key) for key in self.keys()} for row in self.rows]

    def keys(self) -> list[str]:
        """Return every key, printed ones first."""
        return [*(column.key for column in self.columns), *self.extra]


def finite(value: Any) -> Any:
    """Return a plain value that JSON can hold: an infinite number becomes ``None``."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    return [finite(part) for part in value] if isinstance(value, list | tuple) else value
