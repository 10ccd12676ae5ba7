"""``privkit train``: train every run of a configuration."""

from pathlib import Path

import typer


def train(
    config: Path = typer.Argument(help="Configuration file (YAML)."),
    out: Path = typer.Option(..., "--out", help="Folder for the runs; what is complete there is kept."),
    seeds: int | None = typer.Option(None, "--seeds", min=1, help="Seeds 0 to N-1 instead of the file's."),
    device: str = typer.Option("auto", "--device", help="auto, cpu or cuda."),
    threads: int = typer.Option(
        1, "--threads", min=1, help="CPU threads of torch; stacked steps are small, one is often fastest."
    ),
) -> None:
    """Train, and record everything that leaves a client. A killed training goes on where it was."""
    from privkit.cli.progress import bars
    from privkit.config import load

    study = load(config, seeds=seeds)
    import torch

    from privkit.train.loop import train as run

    torch.set_num_threads(threads)
    with bars() as progress:
        paths = run(study, out, device=device, progress=progress)
    for stopped in filter(None, map(_stopped, paths)):
        typer.echo(stopped)
    typer.echo(f"{len(paths)} run{'s' * (len(paths) > 1)} in {out}. Next: privkit audit --run {out}")


def _stopped(path: Path) -> str:
    """Return the sentence that a run's budget is spent, or nothing."""
    from privkit.store import Run

    run = Run(path)
    seed = "" if run.info.seed is None else f" (seed {run.info.seed})"
    return f"cell {run.info.cell}{seed} {run.ending}." if run.ended else ""
