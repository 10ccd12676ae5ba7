"""``privkit selfcheck``: do the numbers of this installation agree with independent calculations?"""

from pathlib import Path

import typer


def selfcheck(
    cases: Path | None = typer.Option(
        None, "--cases", help="Reference cases (JSON) instead of the shipped ones."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print everything as JSON, numbers in full."),
    peers: bool = typer.Option(
        True, "--peers/--no-peers", help="Ask other installed libraries too, for comparison."
    ),
    verbose: bool = typer.Option(
        False, "--verbose", help="Print a line per case and per answer of a library."
    ),
) -> None:
    """Hold this installation against reference values. Exit 1 unless every case was run and passed."""
    from accountant.selfcheck import peer_table
    from accountant.selfcheck.outcome import Status, tally
    from privkit.selfcheck import report, run

    wanted = run.read(run.SHIPPED if cases is None else (cases,))
    outcomes = run.outcomes(wanted)
    rows = peer_table.rows(wanted.accounting) if peers else iter(())
    counted = tally(outcomes)
    if as_json:
        typer.echo(report.as_json(outcomes, list(rows)))
    else:
        for line in report.lines(outcomes, rows, verbose=verbose):
            typer.echo(line)
    raise typer.Exit(0 if counted[Status.PASSED] == len(outcomes) else 1)
