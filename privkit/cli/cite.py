"""``privkit cite``: BibTeX of privkit and of everything that some runs used."""

from pathlib import Path

import typer


def cite(
    runs: list[Path] | None = typer.Argument(
        None, help="Runs, or folders of runs; without any, all plug-ins."
    ),
    run: list[Path] = typer.Option([], "--run", help="The same, as other commands name it."),
) -> None:
    """Print BibTeX of all that runs were made with. Privkit itself, methods, defenses, data, encoders, attacks."""
    from privkit import cite
    from privkit.cli.table import expanded

    folders = [*(runs or []), *run]
    if not folders:
        typer.echo(cite.bibtex(cite.every_plugin()), nl=False)
        return
    used = [name for folder in expanded(folders) for name in _used(folder)]
    typer.echo(cite.bibtex(cite.named(used)), nl=False)


def _used(folder: Path) -> list[str]:
    """Return the names of everything that a folder's runs were made with, and of its audit's attacks."""
    from privkit import cite, store
    from reports import findings_file

    found = [name for run in store.find(folder) for name in cite.used(run.info.config)]
    if (folder / "audit" / findings_file.NAME).is_file():
        found += cite.names_in(findings_file.of_run(folder).provenance.get("attacks"))
    return found
