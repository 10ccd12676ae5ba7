"""Train every run of a study of the gradient lab, one after the other; each goes on where it was left."""

from collections.abc import Callable
from pathlib import Path

from privkit.errors import DivergedError
from privkit.finetune.config import FinetuneConfig
from privkit.finetune.lab import Lab
from privkit.finetune.loop import Progress, info
from privkit.finetune.loop import train as train_one
from privkit.store import Run
from privkit.study import Plan, Study, plans, refuse_single_run
from privkit.train.loop import device_named


def train(
    study: Study[FinetuneConfig],
    root: Path,
    *,
    device: str = "auto",
    progress: Progress = lambda stage, done, total: None,
    notice: Callable[[str], None] = lambda sentence: None,
    announce: Callable[[str], None] = lambda what: None,
) -> list[Path]:
    """Train every run of a study that is not complete yet, and return all of their folders.

    Args:
        study: what to run.
        root: folder for the runs; what is complete there is left alone, what was begun is resumed.
        device: ``auto``, ``cpu`` or ``cuda``.
        progress: called with a stage's name, how much of it is done, and of how much.
        notice: called once with each sentence about records that are left out.
        announce: called before each run with what is trained in it, in a few words.

    Raises:
        InputError: a run there was created from another configuration, data or seed; nothing is trained then.
        DivergedError: some runs diverged, the first is named; all others were trained to their ends before.
    """
    todo = plans(study)
    refuse_single_run(root, todo)
    for plan in todo:
        _refuse_change(plan, root / plan.name, device)
    for sentence in _left_out(study):
        notice(sentence)
    diverged: list[str] = []
    for plan in todo:
        announce(f"{plan.cell}, seed {plan.seed}, rounds")
        try:
            train_one(
                plan.config,
                root / plan.name,
                seed=plan.seed,
                cell=plan.cell,
                device=device,
                progress=progress,
            )
        except DivergedError as error:
            diverged.append(f"cell {plan.cell} (seed {plan.seed}): {error}")
    if diverged:
        raise DivergedError(diverged[0])
    return [root / plan.name for plan in todo]


def _refuse_change(plan: Plan[FinetuneConfig], path: Path, device: str) -> None:
    if (path / "run.json").exists():
        lab = Lab.open(plan.config, seed=plan.seed, device=device_named(device))
        Run(path).refuse_change(info(lab, cell=plan.cell))


def _left_out(study: Study[FinetuneConfig]) -> list[str]:
    """Return a sentence for every domain that leaves records out, each once."""
    notes = [
        note for config in study.cells.values() for domain in config.data.load() for note in domain.notes
    ]
    return list(dict.fromkeys(notes))
