"""``privkit train``: train every run of a configuration."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from privkit.study import Study


class Numbers(StrEnum):
    """In which numbers forward and backward passes are computed."""

    FP32 = "fp32"
    BF16 = "bf16"


def train(
    configs: list[Path] = typer.Argument(help="Configuration files (YAML), trained one after the other."),
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
    from privkit.errors import InputError

    if out is not None and len(configs) > 1:
        raise InputError(
            f"--out {out} is one folder for {len(configs)} studies; leave it out, or give one file."
        )
    change = partial(_changed, data=data, cells=cells, dtype=dtype, skip_bad=skip_bad)
    found = [(out or Path("runs") / path.stem, _lab(path), path) for path in configs]
    studies = [(folder, lab, change(lab.load(path, seeds=seeds))) for folder, lab, path in found]
    import torch

    torch.set_num_threads(threads)
    for folder, lab, study in studies:
        _train(study, lab, folder, device=device)


class _Lab(NamedTuple):
    """What reads and trains the studies of one kind of federation, and what tells beforehand what training takes."""

    load: "Callable[..., Study[Any]]"
    train: "Callable[..., list[Path]]"
    foretold: "Callable[..., list[str]]"


def _lab(config: Path) -> _Lab:
    """Return the lab whose study a file describes."""
    from privkit.study import load, load_as, tunes

    if tunes(config):
        from privkit.finetune import estimate
        from privkit.finetune.config import FinetuneConfig
        from privkit.finetune.study import train as tune

        return _Lab(partial(load_as, FinetuneConfig), tune, estimate.foretold)
    from privkit.train.loop import train

    return _Lab(load, train, lambda study, folder, *, device: [])


def _train(study: "Study[Any]", lab: _Lab, folder: Path, *, device: str) -> None:
    """Train one study, and say what came of it."""
    from privkit.cli.progress import Named, bars

    whole = _complete(study, folder)
    for sentence in lab.foretold(study, folder, device=device):
        typer.echo(sentence)
    left_out: list[str] = []
    with bars() as progress:
        named = Named(progress)
        paths = lab.train(
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


def _changed(
    study: "Study[Any]", *, data: Path | None, cells: list[str], dtype: Numbers | None, skip_bad: bool
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
