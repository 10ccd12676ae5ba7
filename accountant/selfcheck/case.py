"""A reference value: what is asked, what the answer is, and how close one has to come."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHIPPED = Path(__file__).parent / "cases" / "accounting.json"


class BadCasesError(ValueError):
    """A file does not hold reference cases."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One reference value of the accountant.

    Attributes:
        name: unique in its file.
        kind: what is asked, such as "epsilon".
        params: what it is asked of, as the file has it.
        value: the answer: a decimal number of any length, or words.
        tolerance: how close one has to come, as the file has it.
    """

    name: str
    kind: str
    params: Mapping[str, Any]
    value: str
    tolerance: str


def load(path: Path) -> Any:
    """Return the JSON of a file.

    Raises:
        BadCasesError: it is no JSON.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadCasesError(f"{path} is no JSON ({error}); give a file of reference cases.") from None


def from_plain(plain: Any, *, where: str) -> Case:
    """Return the case that one entry of a file holds.

    Args:
        plain: the entry.
        where: what to call it in an error.

    Raises:
        BadCasesError: a field is missing or is of another type.
    """
    wanted = {"case": str, "kind": str, "params": dict}
    if not isinstance(plain, dict) or any(not isinstance(plain.get(key), of) for key, of in wanted.items()):
        raise BadCasesError(
            f"{where} is no reference case; it needs the texts case, kind and the object params."
        )
    missing = [key for key in ("value", "tolerance") if key not in plain]
    if missing:
        raise BadCasesError(f"{where} ({plain['case']!r}) has no {missing[0]}; give a number or a text.")
    value = plain["value"]
    return Case(
        name=plain["case"],
        kind=plain["kind"],
        params=plain["params"],
        value=" -> ".join(map(str, value)) if isinstance(value, list) else str(value),
        tolerance=str(plain["tolerance"]),
    )
