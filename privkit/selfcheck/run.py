"""Read reference cases and run them, whichever of the two formats they come in."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accountant.selfcheck import case as accounting
from accountant.selfcheck import judge as judge_accounting
from accountant.selfcheck.case import BadCasesError, Case
from accountant.selfcheck.outcome import Outcome
from privkit.selfcheck import audit_case, judge
from privkit.selfcheck.audit_case import AuditCase

SHIPPED = (accounting.SHIPPED, audit_case.SHIPPED)


@dataclass(frozen=True, kw_only=True)
class Cases:
    """Reference cases of both kinds, in the order of their files."""

    accounting: tuple[Case, ...]
    audit: tuple[AuditCase, ...]


def read(paths: Iterable[Path]) -> Cases:
    """Return the cases of some files: lists of cases, or objects with a list called ``cases``.

    Raises:
        BadCasesError: a file is no such thing, or an entry is no case.
        OSError: a file cannot be read.
    """
    entries = [entry for path in paths for entry in _entries(path)]
    return Cases(
        accounting=tuple(
            accounting.from_plain(plain, where=where) for where, plain in entries if not _audits(plain)
        ),
        audit=tuple(audit_case.from_plain(plain, where=where) for where, plain in entries if _audits(plain)),
    )


def outcomes(cases: Cases) -> list[Outcome]:
    """Return what became of each case."""
    return [*map(judge_accounting.judge, cases.accounting), *map(judge.judge, cases.audit)]


def _entries(path: Path) -> list[tuple[str, Any]]:
    plain = accounting.load(path)
    found = plain.get("cases") if isinstance(plain, dict) else plain
    if not isinstance(found, list) or not found:
        raise BadCasesError(
            f"{path} holds no reference cases; give a list of them, or an object with a list 'cases'."
        )
    return [(f"entry {index + 1} of {path}", entry) for index, entry in enumerate(found)]


def _audits(plain: Any) -> bool:
    return isinstance(plain, dict) and "id" in plain and "kind" not in plain
