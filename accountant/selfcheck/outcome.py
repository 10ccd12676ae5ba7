"""What became of a reference case."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one case.

    Attributes:
        name: of the case.
        kind: what was asked.
        status: passed, failed, or not run because it was not understood.
        expected: the reference value, in words.
        found: the answer, in words; empty if there is none.
        reason: why it failed or was not run; empty if it passed.
    """

    name: str
    kind: str
    status: Status
    expected: str
    found: str = ""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "case": self.name,
            "kind": self.kind,
            "status": self.status.value,
            "expected": self.expected,
            "found": self.found,
            "reason": self.reason,
        }


def tally(outcomes: list[Outcome]) -> dict[Status, int]:
    """Return how many cases ended in each way."""
    return {status: sum(outcome.status is status for outcome in outcomes) for status in Status}
