"""A reference case about scores, limits and certificates."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accountant.selfcheck.case import BadCasesError
from accountant.selfcheck.tolerance import Tolerance, UnknownToleranceError, parse

SHIPPED = Path(__file__).parent / "cases" / "audit.json"


@dataclass(frozen=True, kw_only=True)
class AuditCase:
    """One reference case.

    Attributes:
        name: unique in its file; the beginning of it may be the name of a family.
        inputs: what is given.
        expected: what comes out, by name; ``rows`` for a table.
        tolerance: largest difference.
    """

    name: str
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    tolerance: Tolerance


def from_plain(plain: Any, *, where: str) -> AuditCase:
    """Return the case that one entry of a file holds.

    Raises:
        BadCasesError: a field is missing or is of another type.
    """
    wanted = {"id": str, "inputs": dict, "expected": dict}
    if not isinstance(plain, dict) or any(not isinstance(plain.get(key), of) for key, of in wanted.items()):
        raise BadCasesError(
            f"{where} is no reference case; it needs the text id and the objects inputs and expected."
        )
    try:
        tolerance = parse(str(plain["tol"]))
    except (KeyError, UnknownToleranceError):
        raise BadCasesError(
            f"{where} ({plain['id']!r}) has no tol; give the largest difference as a number."
        ) from None
    if "relative" in str(plain.get("note", "")):
        tolerance = Tolerance(relative=tolerance.absolute or tolerance.relative)
    return AuditCase(
        name=plain["id"], inputs=plain["inputs"], expected=plain["expected"], tolerance=tolerance
    )
