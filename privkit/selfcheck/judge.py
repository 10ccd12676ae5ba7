"""Run an audit case and say what became of it; nothing that a file holds makes this raise."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard

from accountant.selfcheck.outcome import Outcome, Status
from accountant.selfcheck.privacy import NotUnderstoodError
from privkit.selfcheck import families as _families  # noqa: F401  (registers them)
from privkit.selfcheck.audit_case import AuditCase
from privkit.selfcheck.families import _facts, _tables

_LONGEST = 60


@dataclass(frozen=True, kw_only=True)
class _Comparison:
    """One expected value next to the answer; ``why`` is set for one that is not compared."""

    key: str
    expected: Any
    found: Any = None
    why: str = ""


def judge(case: AuditCase) -> Outcome:
    """Return whether every expected value of a case is met."""
    try:
        compared = [one for one in _comparisons(case) if not one.why]
        wrong = [one for one in compared if not _agrees(one.found, one.expected, case)]
    except NotUnderstoodError as error:
        return _outcome(case, Status.NOT_RUN, reason=str(error))
    except Exception as error:
        kind = "refused" if isinstance(error, ValueError) else type(error).__name__
        return _outcome(case, Status.FAILED, reason=f"{kind}: {' '.join(str(error).split())}")
    if not compared:
        return _outcome(case, Status.NOT_RUN, reason="nothing in it can be compared")
    if wrong:
        first = wrong[0]
        return _outcome(
            case,
            Status.FAILED,
            found=_short(first.found),
            reason=f"{len(wrong)} of {len(compared)} values differ, first {first.key}: {_short(first.found)}, "
            f"not {_short(first.expected)}",
        )
    return _outcome(case, Status.PASSED, found=f"{len(compared)} values agree")


def _comparisons(case: AuditCase) -> Iterator[_Comparison]:
    for key, expected in case.expected.items():
        why = _facts.why_only_shown(key)
        if key in _DESCRIBING:
            continue
        if why is not None:
            yield _Comparison(key=key, expected=expected, why=why)
        elif key == "rows":
            yield from _rows(case, expected)
        else:
            yield _Comparison(
                key=key, expected=expected, found=_facts.answer(key, case.inputs, name=case.name)
            )


def _rows(case: AuditCase, rows: Any) -> Iterator[_Comparison]:
    if not isinstance(rows, list) or not rows:
        raise NotUnderstoodError("rows are not a list with something in it")
    for index, row in enumerate(rows):
        if isinstance(row, dict):
            yield from _named_row(case, row, index)
        elif isinstance(row, list):
            table = _tables.table_for(case.name, case.inputs, len(row))
            found = table.answer(row[: table.arguments], case.inputs)
            yield _Comparison(key=f"row {index + 1}", expected=row[table.arguments :], found=found)
        else:
            raise NotUnderstoodError(f"row {index + 1} is neither a list nor an object")


def _named_row(case: AuditCase, row: dict[str, Any], index: int) -> Iterator[_Comparison]:
    given = {key: value for key, value in row.items() if not _facts.answers_rows(key)}
    for key, expected in row.items():
        why = _facts.why_only_shown(key)
        if key not in given:
            yield _Comparison(
                key=f"{key} of row {index + 1}",
                expected=expected,
                found=None if why else _facts.answer_of_row(key, {**case.inputs, **given}),
                why=why or "",
            )


def _agrees(found: Any, expected: Any, case: AuditCase) -> bool:
    if isinstance(found, _facts.Simulated):
        return _is_number(expected) and abs(found.value - expected) <= _allowed(expected, case) + found.noise
    if isinstance(found, list | tuple) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(lambda a, b: _agrees(a, b, case), found, expected))
    if isinstance(expected, str) and isinstance(found, bool):
        return found
    if _is_number(found) and _is_number(expected):
        return abs(found - expected) <= _allowed(expected, case)
    return type(found) is type(expected) and found == expected


def _allowed(expected: float | int, case: AuditCase) -> float:
    return max(case.tolerance.relative * abs(expected), case.tolerance.absolute)


def _is_number(value: Any) -> TypeGuard[float | int]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = str(value.value if isinstance(value, _facts.Simulated) else value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _outcome(case: AuditCase, status: Status, *, found: str = "", reason: str = "") -> Outcome:
    return Outcome(
        name=case.name,
        kind="audit",
        status=status,
        expected=_short(json.dumps(dict(case.expected))),
        found=found,
        reason=reason,
    )


_DESCRIBING = ("cols", "columns", "note")
