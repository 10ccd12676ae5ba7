"""``privkit train``: train every run of a configuration."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from privkit.study import Study


class Numbers(StrEnum):
    """In which numbers forward and backward passes are computed."""

    FP32 = "fp32"
    BF16 = "bf16"


def train(
    config: Path = typer.Argument(help="Configuration file (YAML)."),
    out: Path | None = typer.Option(
        None,
        "--out",
        help="Folder for the runs, runs/NAME-OF-CONFIG by default; what is complete there is kept.",
    ),
    data: Path | None = typer.Option(
        None, "--data", help="Folder with your copy of the data set: the configuration's data.root."
    ),
    cells: list[str] = typer.Option(
        [], "--cells", help="Only these cells, comma between; * stands for any characters."
    ),
    seeds: int | None = typer.Option(None, "--seeds", min=1, help="Seeds 0 to N-1 instead of the file's."),
    device: str = typer.Option("auto", "--device", help="auto, cpu or cuda."),
    dtype: Numbers | None = typer.Option(
        None, "--dtype", help="Compute in fp32 or bf16: the configuration's precision."
    ),
    skip_bad: bool = typer.Option(
        False, "--skip-bad", help="Leave out pictures that cannot be used: the configuration's data.skip_bad."
    ),
    threads: int = typer.Option(
        1, "--threads", min=1, help="CPU threads of torch; stacked steps are small, one is often fastest."
    ),
) -> None:
    """Train, and record everything that leaves a client. A killed training goes on where it was."""
    from privkit.cli.progress import Named, bars

    study, run = _read(config, seeds)
    study = _changed(study, data, cells, dtype, skip_bad=skip_bad)
    folder = out or Path("runs") / config.stem
    import torch

    whole = _complete(study, folder)
    torch.set_num_threads(threads)
    left_out: list[str] = []
    with bars() as progress:
        named = Named(progress)
        paths = run(
            study, folder, device=device, progress=named, notice=left_out.append, announce=named.announce
        )
    for sentence in left_out:
        typer.echo(sentence)
    for stopped in filter(None, map(_stopped, paths)):
        typer.echo(stopped)
    runs = f"{len(paths)} run{'s' * (len(paths) > 1)}"
    if whole:
        typer.echo(f"Nothing to do: {runs} {'are' if len(paths) > 1 else 'is'} complete, and unchanged.")
    typer.echo(f"{runs} in {folder}. Next: privkit audit --run {folder}, or privkit table utility {folder}")


def _read(config: Path, seeds: int | None) -> "tuple[Study[Any], Callable[..., list[Path]]]":
    """Return the study that a file describes, and what trains its kind of federation."""
    from privkit.study import load, load_as, tunes

    if tunes(config):
        from privkit.finetune.config import FinetuneConfig
        from privkit.finetune.study import train as tune

        return load_as(FinetuneConfig, config, seeds=seeds), tune
    from privkit.train.loop import train as run

    return load(config, seeds=seeds), run


def _changed(
    study: "Study[Any]", data: Path | None, cells: list[str], dtype: Numbers | None, *, skip_bad: bool
) -> "Study[Any]":
    """Return a study with what the command line changes in it."""
    from privkit import overrides
    from privkit.cli.listed import names
    from privkit.config import Precision

    wanted = names(cells, option="--cells", kind="cell")
    study = overrides.only(study, wanted) if wanted else study
    study = overrides.with_root(study, data) if data is not None else study
    study = overrides.skipping_bad(study) if skip_bad else study
    return overrides.with_precision(study, Precision(dtype)) if dtype is not None else study


def _complete(study: "Study[Any]", folder: Path) -> bool:
    """Return whether every run of a study is there and complete."""
    from privkit.store import Run
    from privkit.study import plans

    paths = [folder / plan.name for plan in plans(study)]
    return all((path / "run.json").exists() and Run(path).complete for path in paths)


def _stopped(path: Path) -> str:
    """Return the sentence that a run's budget is spent, or nothing."""
    from privkit.store import Run

    run = Run(path)
    seed = "" if run.info.seed is None else f" (seed {run.info.seed})"
    return f"cell {run.info.cell}{seed} {run.ending}." if run.ended else ""
