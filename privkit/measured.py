"""What a run measured, as its files have it: accuracies and seconds, refused where no training writes such."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privkit import atomic
from privkit.errors import InputError
from privkit.store import Run

_WAY_OUT = "it was damaged or edited: restore it, or train the run again"
NEWCOMER = -1
"""Number, in the table of accuracies, of the client that never trains."""
_COLUMNS = ("round", "client", "domain", "accuracy")


@dataclass(frozen=True, eq=False)
class Measured:
    """What one run measured.

    Attributes:
        accuracies: of each round in order, the accuracy of each domain, in [0, 1]; none if it kept no metrics.
        newcomers: of each round in order, the accuracy of somebody who never trained, on the domain that was held out;
            none if none was, or the method has no model for such.
        seconds: training time, the run's share of its batch's; ``None`` if that was not kept.
    """

    accuracies: tuple[Mapping[str, float], ...]
    seconds: float | None
    newcomers: tuple[float, ...] = ()

    @property
    def last(self) -> Mapping[str, float]:
        """Return the accuracy of each domain after the last round; empty if the run kept no metrics."""
        return self.accuracies[-1] if self.accuracies else {}


def of_cell(name: str, runs: Sequence[Run]) -> list[Measured]:
    """Return what each run of a cell measured, in their order; all of them kept metrics, or none.

    Raises:
        InputError: some kept metrics and others did not; or the metrics are no such table, lack a round or client or
            hold a number that is no accuracy; or the time is none.
    """
    found = [_of_run(run) for run in runs]
    missing = next((run.path for run, one in zip(runs, found, strict=True) if not one.accuracies), None)
    if missing is not None and any(one.accuracies for one in found):
        raise InputError(
            f"{missing / 'metrics.parquet'} is missing, and other runs of cell {name} have theirs; restore it, or "
            f"remove {missing} and train it again."
        )
    return found


def _of_run(run: Run) -> Measured:
    accuracies, newcomers = _accuracies(run)
    return Measured(accuracies, _seconds(run), newcomers)


def _accuracies(run: Run) -> tuple[tuple[Mapping[str, float], ...], tuple[float, ...]]:
    path = run.path / "metrics.parquet"
    if not path.exists():
        return (), ()
    rows = _rows(path)
    tested = list(enumerate(run.info.clients))
    if any(row["client"] == NEWCOMER for row in rows):
        tested.insert(0, (NEWCOMER, str(run.info.config.get("held_out"))))
    expected = [(t, m, name) for t in range(run.rounds) for m, name in tested]
    if sorted((row["round"], row["client"], str(row["domain"])) for row in rows) != expected:
        raise InputError(
            f"{path} does not hold one accuracy of each of {len(tested)} domains in each of {run.rounds} "
            f"rounds; {_WAY_OUT}."
        )
    odd = next((row["accuracy"] for row in rows if not _is_share(row["accuracy"])), 0.0)
    if not _is_share(odd):
        raise InputError(f"{path} holds the accuracy {odd}, and it is a share from 0 to 1; {_WAY_OUT}.")
    found: list[dict[str, float]] = [{} for _ in range(run.rounds)]
    newcomers: dict[int, float] = {}
    for row in rows:
        if row["client"] == NEWCOMER:
            newcomers[row["round"]] = row["accuracy"]
        else:
            found[row["round"]][row["domain"]] = row["accuracy"]
    return tuple(found), tuple(newcomers[t] for t in sorted(newcomers))


def _seconds(run: Run) -> float | None:
    path = run.path / "timing.json"
    if not path.exists():
        return None
    held: Any = atomic.read_json(path)
    known: Mapping[str, Any] = held if isinstance(held, Mapping) else {}
    spent: Any = known.get("seconds")
    runs: Any = known.get("runs_in_batch")
    if _at_least(0.0, spent) and _at_least(1.0, runs):
        return spent / runs
    raise InputError(
        f"{path} holds seconds={spent!r} and runs_in_batch={runs!r}, and they are at least 0 and 1; "
        "it was damaged or edited: remove it."
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"{path} is no parquet file ({said}); {_WAY_OUT}.") from None
    rows = [] if set(_COLUMNS) - set(table.column_names) else table.to_pylist()
    if not rows or not all(isinstance(row[key], int) for row in rows for key in ("round", "client")):
        raise InputError(f"{path} is no table of {', '.join(_COLUMNS)}; {_WAY_OUT}.")
    return rows


def _is_share(value: Any) -> bool:
    return _at_least(0.0, value) and value <= 1


def _at_least(least: float, value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return math.isfinite(value) and value >= least
