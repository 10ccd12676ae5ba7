"""``privkit report``: an audit's page and tables once more, from what the audit found."""

from pathlib import Path

import typer


def report(
    run: Path = typer.Option(..., "--run", help="An audited run, or an audited folder of runs."),
    out: Path | None = typer.Option(None, "--out", help="Write the page here, and nothing else."),
) -> None:
    """Draw an audit's page and tables again. They come from its findings; nothing is computed anew."""
    from reports import audit_files, findings_file

    folder = findings_file.folder_of(run)
    findings = findings_file.read(folder / findings_file.NAME)
    page = audit_files.write(findings, folder) if out is None else audit_files.write_page(findings, out)
    typer.echo(f"Report: {page}")
