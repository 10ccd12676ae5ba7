"""``privkit audit``: promised, taken, cost, and one verdict."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from reports.findings import Findings


class FailOn(StrEnum):
    """What, beside a violation, makes the exit code non-zero."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    UNCOVERED = "uncovered"


def audit(
    run: Path = typer.Option(..., "--run", help="A run, or a folder of runs."),
    attacks: list[str] = typer.Option([], "--attacks", help="Attacks to run, comma between; all by default."),
    fail_on: list[FailOn] = typer.Option(
        [FailOn.VIOLATION],
        "--fail-on",
        help="Exit 3 on a violation always; 4 inconclusive, 5 uncovered if asked.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the whole audit as JSON."),
) -> None:
    """Audit runs. Exit 0 fine, 2 bad input, 3 violation, 4 inconclusive, 5 not covered, 6 an attack failed."""
    from privkit.audit.run import attack_named
    from privkit.audit.run import audit as run_audit
    from privkit.cli.progress import bars
    from privkit.errors import InputError
    from privkit.lock import hold
    from reports import audit_files

    if not run.is_dir():
        raise InputError(f"{run} does not exist; give a folder that `privkit train` or a Recorder wrote.")
    lock = hold(run)
    names = [name for text in attacks for name in text.split(",") if name]
    with bars() as progress:
        findings = run_audit(run, attacks=[attack_named(n) for n in names] or None, progress=progress)
    # a choice of attacks must not replace the audit of all of them
    page = audit_files.write(findings, run / "audit" / "partial" if names else run / "audit")
    if as_json:
        from privkit.atomic import canonical_json

        typer.echo(canonical_json(audit_files.document(findings)))
    else:
        from reports import terminal

        terminal.show(findings, terminal.console())
        typer.echo(f"Report: {page}")
    del lock
    raise typer.Exit(_exit_code(findings, fail_on))


def _exit_code(findings: "Findings", fail_on: list[FailOn]) -> int:
    from reports.findings import Verdict

    found = {cell.verdict for cell in findings.cells}
    if Verdict.VIOLATION in found:
        return 3
    if findings.failed:
        return 6
    if Verdict.INCONCLUSIVE in found and FailOn.INCONCLUSIVE in fail_on:
        return 4
    return 5 if Verdict.NOT_COVERED in found and FailOn.UNCOVERED in fail_on else 0
