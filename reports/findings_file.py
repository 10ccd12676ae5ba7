"""An audit's findings on disk: everything that tables and pages are made of, read back equal."""

from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from privkit import atomic
from privkit.errors import InputError
from reports.findings import Findings

SCHEMA = 1
NAME = "findings.json"
_FINDINGS = TypeAdapter(Findings)


def write(path: Path, findings: Findings) -> None:
    """Replace a file by these findings as JSON; infinite numbers are the text ``"Infinity"``."""
    # not atomic.write_json: keys keep their order, which is that of clients and of tests
    content = {"schema": SCHEMA, "findings": findings}
    atomic.write_bytes(path, to_json(content, inf_nan_mode="strings", indent=1) + b"\n")


def read(path: Path) -> Findings:
    """Return what :func:`write` wrote, equal to what it was given.

    Raises:
        InputError: no such file, one of another schema, or a damaged one.
    """
    document = atomic.read_json(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{path} has schema {schema}; this version reads {SCHEMA}: run `privkit audit` on its runs again."
        )
    try:
        return _FINDINGS.validate_python(document.get("findings"))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the whole of it"
        raise InputError(
            f"{path} does not hold an audit's findings ({where}); it was damaged, or written by another version: "
            "run `privkit audit` on its runs again."
        ) from None


def of_run(run: Path) -> Findings:
    """Return the findings of a folder that was audited, or of the audit's own folder; any other is refused."""
    path = run / NAME if (run / NAME).is_file() else run / "audit" / NAME
    if not run.is_dir():
        raise InputError(f"{run} does not exist; give a folder that `privkit audit` has audited.")
    partial = run / "audit" / "partial"
    if not path.is_file() and (partial / NAME).is_file():
        raise InputError(
            f"{run} has only an audit of chosen attacks; give {partial}, or audit it without --attacks."
        )
    if not path.is_file():
        raise InputError(f"{run} has no audit; run `privkit audit --run {run}` first.")
    return read(path)
