"""``privkit audit``: promised, taken, cost, and one verdict."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from privkit.audit.choice import Attack
    from reports.findings import Findings


class FailOn(StrEnum):
    """What, beside a violation, makes the exit code non-zero."""

    VIOLATION = "violation"
    INCONCLUSIVE = "inconclusive"
    UNCOVERED = "uncovered"


def audit(
    run: Path = typer.Option(..., "--run", help="A run, or a folder of runs."),
    attacks: list[str] = typer.Option([], "--attacks", help="Attacks to run, comma between; all by default."),
    config: Path | None = typer.Option(None, "--config", help="YAML file with settings of attacks."),
    fail_on: list[FailOn] = typer.Option(
        [FailOn.VIOLATION],
        "--fail-on",
        help="Exit 3 on a violation always; 4 inconclusive, 5 uncovered if asked.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the whole audit as JSON."),
) -> None:
    """Audit runs. Exit 0 fine, 2 bad input, 3 violation, 4 inconclusive, 5 not covered, 6 an attack failed."""
    from privkit.audit.run import audit as run_audit
    from privkit.cli.progress import bars
    from privkit.lock import hold
    from privkit.store import refuse_no_folder
    from reports import audit_files

    refuse_no_folder(run)
    chosen, whole = _chosen(attacks, config)
    lock = hold(run)
    with bars() as progress:
        findings = run_audit(run, attacks=chosen, progress=progress)
    # a choice of attacks must not replace the audit of all of them
    page = audit_files.write(findings, run / "audit" if whole else run / "audit" / "partial")
    if as_json:
        from privkit.atomic import canonical_json

        typer.echo(canonical_json(audit_files.document(findings)))
    else:
        from reports import terminal

        terminal.show(findings, terminal.console())
        typer.echo(f"Report: {page}")
    del lock
    raise typer.Exit(_exit_code(findings, fail_on))


def _chosen(given: list[str], config: Path | None) -> "tuple[list[Attack], bool]":
    """Return the attacks to run, and whether every attack there is is among them."""
    from privkit.audit.choice import configured, every_attack
    from privkit.cli.listed import names
    from privkit.errors import InputError
    from privkit.plug import names as names_of
    from privkit.plug import unknown

    found = every_attack() if config is None else configured(config)
    wanted = names(given, option="--attacks", kind="attack")
    known = sorted({attack.name for attack in found})
    for name in wanted:
        if name in names_of("attacks.split"):
            raise InputError(f"attack {name} is of split learning; run `privkit hijack configs/fsha.yaml`.")
        if name not in known:
            raise InputError(unknown("attack", name, known=known))
    return [attack for attack in found if not wanted or attack.name in wanted], not wanted


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
