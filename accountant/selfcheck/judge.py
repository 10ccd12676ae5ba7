"""Run a case and say what became of it; nothing that a file holds makes this raise."""

import re
from collections.abc import Callable
from typing import Any

from accountant.selfcheck import laws as _laws  # noqa: F401  (registers them)
from accountant.selfcheck import refusals, registry, tolerance
from accountant.selfcheck.case import Case
from accountant.selfcheck.outcome import Outcome, Status
from accountant.selfcheck.privacy import NotUnderstoodError

_CONVERSION_NAMED = re.compile(r"^(?:rdp|zcdp)_(?P<conversion>improved|best|classic)")


def judge(case: Case) -> Outcome:
    """Return whether the accountant's answer to a case agrees with its value."""
    try:
        return _JUDGES.get(case.kind, _judge_value)(case)
    except (NotUnderstoodError, tolerance.UnknownToleranceError) as error:
        return _outcome(case, Status.NOT_RUN, reason=str(error))
    except ValueError as error:
        return _outcome(case, Status.FAILED, reason=f"refused: {' '.join(str(error).split())}")
    except Exception as error:
        return _outcome(case, Status.FAILED, reason=f"{type(error).__name__}: {' '.join(str(error).split())}")


def answer(case: Case) -> tuple[float, ...]:
    """Return the accountant's numbers for a case: one, or as many as its value names.

    Raises:
        NotUnderstoodError: no law fits.
        ValueError: a law refuses the numbers.
    """
    params = dict(case.params)
    named = _CONVERSION_NAMED.match(case.name)
    if named and "conversion" not in params:  # such a case gives the parameters of the plain mechanism
        params["conversion"] = named["conversion"]
    found = registry.question(case.kind, params).answer()
    return tuple(map(float, found)) if isinstance(found, tuple) else (float(found),)


def _judge_value(case: Case) -> Outcome:
    if case.value.strip().lower() in _REFUSED:
        return _judge_refused_answer(case)
    near = tolerance.parse(case.tolerance)
    expected = [part.strip() for part in case.value.split("->")]
    if not all(map(tolerance.is_decimal, expected)):
        raise NotUnderstoodError(f"the value {case.value!r} is not understood")
    found = answer(case)
    shown = " -> ".join(f"{number:.17g}" for number in found)
    if len(found) != len(expected):
        return _outcome(case, Status.FAILED, found=shown, reason=f"{len(found)} numbers, not {len(expected)}")
    for number, decimal in zip(found, expected, strict=True):
        if not near.agrees(number, decimal):
            return _outcome(
                case, Status.FAILED, found=shown, reason=_how_far(number, decimal, case.tolerance)
            )
    return _outcome(case, Status.PASSED, found=shown)


def _judge_refused_answer(case: Case) -> Outcome:
    try:
        found = answer(case)
    except NotUnderstoodError:
        raise
    except ValueError as error:
        return _outcome(case, Status.PASSED, found=f"refused: {error}")
    return _outcome(case, Status.FAILED, found=str(found[0]), reason="it was not refused")


def _judge_refusal(case: Case) -> Outcome:
    accepted = refusals.let_through(case.params)
    if accepted:
        return _outcome(
            case, Status.FAILED, found="; ".join(accepted), reason="it was not refused everywhere"
        )
    return _outcome(case, Status.PASSED, found="refused everywhere")


def _how_far(found: float, expected: str, tolerance: str) -> str:
    away = found - float(expected)
    relative = f", {abs(away / float(expected)):.2g} of it" if float(expected) else ""
    return f"off by {away:+.3g}{relative}; allowed {tolerance}"


def _outcome(case: Case, status: Status, *, found: str = "", reason: str = "") -> Outcome:
    return Outcome(
        name=case.name, kind=case.kind, status=status, expected=case.value, found=found, reason=reason
    )


_JUDGES: dict[str, Callable[[Case], Outcome]] = {"must_raise": _judge_refusal}
_REFUSED: tuple[Any, ...] = ("error", "raises", "refused", "valueerror")
