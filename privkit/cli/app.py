"""Which commands there are."""

import typer

from privkit import __version__
from privkit.cli import (
    audit,
    calibrate,
    chance,
    cite,
    doctor,
    explain,
    export_data,
    hijack,
    report,
    scores,
    selfcheck,
    spend,
    table,
    train,
    verify_claim,
)
from privkit.cli.plain_help import PlainCommand

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would take longer to import than everything else together
    help="What a federated release promises, what can be taken from it, and what it cost.",
)
app.command("train", cls=PlainCommand)(train.train)
app.command("audit", cls=PlainCommand)(audit.audit)
app.command("hijack", cls=PlainCommand)(hijack.hijack)
app.command("report", cls=PlainCommand)(report.report)
app.command("table", cls=PlainCommand)(table.table)
app.command("scores", cls=PlainCommand)(scores.scores)
app.command("chance", cls=PlainCommand)(chance.chance)
app.command("cite", cls=PlainCommand)(cite.cite)
app.add_typer(calibrate.app, name="calibrate")
app.command("spend", cls=PlainCommand)(spend.spend)
app.command("verify-claim", cls=PlainCommand)(verify_claim.verify_claim)
app.command("explain", cls=PlainCommand)(explain.explain)
app.command("export-data", cls=PlainCommand)(export_data.export_data)
app.command("selfcheck", cls=PlainCommand)(selfcheck.selfcheck)
app.command("doctor", cls=PlainCommand)(doctor.doctor)


def _version(wanted: bool | None) -> None:
    if wanted:
        typer.echo(f"privkit-audit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool | None = typer.Option(
        None, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
    debug: bool = typer.Option(False, "--debug", help="Show where an error came from."),
) -> None:
    """What a federated release promises, what can be taken from it, and what it cost."""
