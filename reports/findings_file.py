"""An audit's findings on disk: everything that tables and pages are made of, read back equal."""

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from privkit import atomic
from privkit.errors import InputError
from reports import ranges
from reports.findings import Findings

SCHEMA = 6
NAME = "findings.json"
_FINDINGS = TypeAdapter(Findings)


def write(path: Path, findings: Findings) -> None:
    """Replace a file by these findings as JSON; infinite numbers are the text ``"Infinity"``."""
    atomic.write_bytes(path, _content(findings))


def read(path: Path) -> Findings:
    """Return what :func:`write` wrote, equal to what it was given.

    Raises:
        InputError: no such file, one of another schema, a damaged one, or one with numbers that no audit finds.
    """
    document = atomic.read_json(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{path} has schema {schema}; this version reads {SCHEMA}: run `privkit audit` on its runs again."
        )
    try:
        found = _FINDINGS.validate_python(document.get("findings"))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the whole of it"
        raise InputError(
            f"{path} does not hold an audit's findings ({where}); it was damaged, or written by another version: "
            "run `privkit audit` on its runs again."
        ) from None
    if json.loads(_content(found)) != document:
        raise InputError(
            f"{path} holds a field that this version does not know; it was edited, or written by another version: "
            "run `privkit audit` on its runs again."
        )
    odd = ranges.impossible(found)
    if odd is not None:
        raise InputError(f"{path} holds {odd}; it was edited: run `privkit audit` on its runs again.")
    return found


def _content(findings: Findings) -> bytes:
    # not atomic.write_json: keys keep their order, which is that of clients and of tests
    content = {"schema": SCHEMA, "findings": findings}
    return to_json(content, inf_nan_mode="strings", indent=1) + b"\n"


def of_run(run: Path) -> Findings:
    """Return the findings of a folder that was audited, or of the audit's own folder; any other is refused."""
    return read(folder_of(run) / NAME)


def folder_of(run: Path) -> Path:
    """Return where the findings of an audited folder are: in the folder itself, or in its ``audit``."""
    path = run / NAME if (run / NAME).is_file() else run / "audit" / NAME
    if not run.is_dir():
        wrong = "is no folder" if run.exists() else "does not exist"
        raise InputError(f"{run} {wrong}; give a folder that `privkit audit` has audited.")
    partial = run / "audit" / "partial"
    if not path.is_file() and (partial / NAME).is_file():
        raise InputError(
            f"{run} has only an audit of chosen attacks; give {partial}, or audit it without --attacks."
        )
    if not path.is_file():
        raise InputError(f"{run} has no audit; run `privkit audit --run {run}` first.")
    return path.parent
