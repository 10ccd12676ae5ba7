"""``privkit hijack``: split learning with an honest server and with one that trains the client's encoder itself."""

from pathlib import Path

import typer


def hijack(
    config: Path = typer.Argument(help="Configuration file (YAML), such as configs/fsha.yaml."),
    out: Path | None = typer.Option(
        None,
        "--out",
        help="Folder for what is rebuilt, runs/NAME-OF-CONFIG by default; it is kept by content.",
    ),
    threads: int = typer.Option(1, "--threads", min=1, help="CPU threads of torch."),
    as_json: bool = typer.Option(False, "--json", help="Print the table as JSON."),
) -> None:
    """Rebuild a client's images. What a passive and a malicious server get, and the factor between them."""
    import torch

    from privkit import atomic, lock
    from privkit.cli.progress import bars
    from privkit.split.settings import load
    from privkit.split.study import study
    from reports import split_table, terminal

    settings, folder = load(config), out or Path("runs") / config.stem
    held = lock.made(folder)
    torch.set_num_threads(threads)
    with bars() as progress:
        findings = study(settings, folder, progress=progress)
    table = split_table.table(findings)
    atomic.write_bytes(folder / "hijack.md", table.markdown().encode())
    atomic.write_bytes(folder / "hijack.json", table.json().encode())
    atomic.write_with(folder / "pictures.png", lambda path: split_table.grid(findings, path))
    del held
    if as_json:
        typer.echo(table.json())
        return
    console = terminal.console()
    console.print(terminal.fitting("Rebuilt from what a client of split learning sends", table, console), "")
    for note in table.notes:
        console.print(note, style="dim", highlight=False)
    typer.echo(f"Pictures: {folder / 'pictures.png'} (first row private; then as in the table)")
