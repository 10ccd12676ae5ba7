"""Who is off by how much: one row per peer."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from accountant.selfcheck.case import Case
from accountant.selfcheck.peers import _ask, _questions
from accountant.selfcheck.peers._ask import Answer

_EACH_S = 20.0
_ALL_S = 60.0
_ROUNDING = 1e-9  # relative; a difference below it is not counted as unsafe


@dataclass(frozen=True, kw_only=True)
class Row:
    """How one peer did.

    Attributes:
        peer: its name.
        asked: cases it was asked.
        answered: cases it gave a number to.
        worst: largest relative error of an answer; None if nothing was answered.
        worst_case: where.
        unsafe: answers that promise more privacy than there is, or accept what must be refused.
        details: one line per case.
    """

    peer: str
    asked: int
    answered: int
    worst: float | None
    worst_case: str
    unsafe: tuple[str, ...]
    details: tuple[str, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "peer": self.peer,
            "asked": self.asked,
            "answered": self.answered,
            "worst_relative_error": self.worst,
            "worst_case": self.worst_case,
            "unsafe": list(self.unsafe),
        }


def rows(cases: Sequence[Case]) -> Iterator[Row]:
    """Yield one row per installed peer, in at most about a minute for all of them."""
    deadline = time.monotonic() + _ALL_S
    peers = _questions.installed()
    for index, peer in enumerate(peers):
        mine = [case for case in cases if _questions.question_for(peer, case) is not None]
        share = (deadline - time.monotonic()) / (len(peers) - index) * 2  # most need less than their share
        until = min(deadline, time.monotonic() + share)
        yield row(peer.name, _ask.ask(peer, mine, each_s=_EACH_S, deadline=until))


def row(peer: str, answers: Sequence[Answer]) -> Row:
    """Return how a peer did."""
    given = [answer for answer in answers if answer.value is not None]
    errors = {answer.case.name: abs(_error(answer)) for answer in given if answer.case.kind != "must_raise"}
    worst_case = max(errors, key=lambda name: errors[name], default="")
    return Row(
        peer=peer,
        asked=len(answers),
        answered=len(given),
        worst=errors.get(worst_case),
        worst_case=worst_case,
        unsafe=tuple(answer.case.name for answer in given if _unsafe(answer)),
        details=tuple(map(_line, answers)),
    )


def _error(answer: Answer) -> float:
    """Return the error relative to the reference value; absolute where that is 0."""
    expected = float(answer.case.value)
    return ((answer.value or 0.0) - expected) / (abs(expected) or 1.0)


def _unsafe(answer: Answer) -> bool:
    if answer.case.kind == "must_raise":
        return math.isfinite(answer.value or 0.0)
    return _error(answer) < -_ROUNDING


def _line(answer: Answer) -> str:
    name = answer.case.name
    if answer.value is None:
        return f"{name}: n/a: {answer.reason}"
    if answer.case.kind == "must_raise":
        return f"{name}: {answer.value:.6g}, but it must be refused"
    warning = " UNSAFE" if _unsafe(answer) else ""
    return (
        f"{name}: {answer.value:.10g}, exact {float(answer.case.value):.10g} ({_error(answer):+.2e}){warning}"
    )
