"""Group runs into cells: runs that differ in nothing but the seed."""

from dataclasses import dataclass

from privkit.errors import InputError
from privkit.store import Run


@dataclass(frozen=True, eq=False)
class Cell:
    """Some runs of one configuration, one per seed."""

    name: str
    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """Return any run; what is not about the seed is the same in all."""
        return self.runs[0]

    @property
    def rounds(self) -> int:
        """Return how many rounds were really done: fewer than planned where a budget ended the runs."""
        return self.first.rounds

    @property
    def delta(self) -> float:
        """Return the delta that epsilons are stated for: the promise's, else the budget's, else 1e-5."""
        info = self.first.info
        return float((info.promise or info.budget or {}).get("delta", 1e-5))


def cells(runs: list[Run]) -> list[Cell]:
    """Return the runs grouped by cell; an unfinished run, or two configurations of one name, is refused."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if not run.complete:
            raise InputError(
                f"{run.path} stopped after {run.completed} of {run.info.rounds} rounds; {_way_out(run)}."
            )
        if run.stopped is not None and not run.rounds:
            raise InputError(f"{run.path} ended before its first release; there is nothing to audit.")
        groups.setdefault(run.info.cell, []).append(run)
    for group in groups.values():
        _refuse_mixture(group)
    return [Cell(name, tuple(group)) for name, group in sorted(groups.items())]


def _way_out(run: Run) -> str:
    """Return how an unfinished run becomes a whole one; a Recorder, which has no seed, does not go on."""
    if run.info.seed is not None:
        return "run the same training command again to finish it, or delete its folder if it diverged"
    return "record all of its rounds into a new folder, or create the Recorder with fewer"


def _refuse_mixture(group: list[Run]) -> None:
    first, seeds = group[0], [run.info.seed for run in group]
    for run in group[1:]:
        for part in ("config", "data", "promise", "budget", "rounds", "num_classes", "dim"):
            if getattr(run.info, part) != getattr(first.info, part):
                raise InputError(
                    f"{first.path} and {run.path} are both cell {first.info.cell!r} but differ in {part}; "
                    "audit them in separate folders."
                )
    other = next((run for run in group if run.rounds != first.rounds), None)
    if other is not None:
        raise InputError(
            f"{first.path} ended after {first.rounds} rounds and {other.path} after {other.rounds}; "
            "audit them in separate folders."
        )
    heads = [run.anchor.head for run in group if run.anchor.lines]
    if len(set(heads)) < len(heads):
        raise InputError(f"two runs of cell {first.info.cell!r} are copies of each other; remove one.")
    known = [seed for seed in seeds if seed is not None]
    if len(set(known)) < len(known):
        raise InputError(f"two runs of cell {first.info.cell!r} have the same seed; remove one.")
