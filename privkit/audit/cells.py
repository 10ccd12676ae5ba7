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
    def delta(self) -> float:
        """Return the delta that epsilons are stated for: the promise's, else 1e-5."""
        return float((self.first.info.promise or {}).get("delta", 1e-5))


def cells(runs: list[Run]) -> list[Cell]:
    """Return the runs grouped by cell; an unfinished run, or two configurations of one name, is refused."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if not run.complete:
            raise InputError(
                f"{run.path} stopped after {run.completed} of {run.info.rounds} rounds; "
                "run the same training command again to finish it."
            )
        groups.setdefault(run.info.cell, []).append(run)
    for group in groups.values():
        _refuse_mixture(group)
    return [Cell(name, tuple(group)) for name, group in sorted(groups.items())]


def _refuse_mixture(group: list[Run]) -> None:
    first, seeds = group[0], [run.info.seed for run in group]
    for run in group[1:]:
        for part in ("config", "data", "promise", "rounds", "num_classes", "dim"):
            if getattr(run.info, part) != getattr(first.info, part):
                raise InputError(
                    f"{first.path} and {run.path} are both cell {first.info.cell!r} but differ in {part}; "
                    "audit them in separate folders."
                )
    heads = [run.anchor.head for run in group if run.anchor.lines]
    if len(set(heads)) < len(heads):
        raise InputError(f"two runs of cell {first.info.cell!r} are copies of each other; remove one.")
    known = [seed for seed in seeds if seed is not None]
    if len(set(known)) < len(known):
        raise InputError(f"two runs of cell {first.info.cell!r} have the same seed; remove one.")
