"""``privkit report``: an audit's page and tables once more, from what the audit found."""

from pathlib import Path

import typer


def report(
    run: Path = typer.Option(..., "--run", help="An audited run, or an audited folder of runs."),
    out: Path | None = typer.Option(None, "--out", help="Write the page here, and nothing else."),
) -> None:
    """Render the page and every table of an audit again; nothing is computed anew."""
    from reports import audit_files, findings_file

    findings = findings_file.of_run(run)
    page = (
        audit_files.write(findings, run / "audit") if out is None else audit_files.write_page(findings, out)
    )
    typer.echo(f"Report: {page}")
