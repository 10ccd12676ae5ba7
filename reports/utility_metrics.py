"""What a run measured, as its files have it: accuracies and seconds, refused where no training writes such."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privkit import atomic
from privkit.errors import InputError
from privkit.store import Run

_WAY_OUT = "it was damaged or edited: restore it, or train the run again"
_COLUMNS = ("round", "client", "domain", "accuracy")


def last_round(run: Run) -> dict[str, float]:
    """Return the accuracy of each domain after the last round, in [0, 1]; empty if the run kept no metrics.

    Raises:
        InputError: the file is no such table, or lacks a round or client, or holds a number that is no accuracy.
    """
    path = run.path / "metrics.parquet"
    if not path.exists():
        return {}
    rows = _rows(path)
    expected = [(t, m, name) for t in range(run.rounds) for m, name in enumerate(run.info.clients)]
    if sorted((row["round"], row["client"], str(row["domain"])) for row in rows) != expected:
        raise InputError(
            f"{path} does not hold one accuracy of each of {len(run.info.clients)} domains in each of {run.rounds} "
            f"rounds; {_WAY_OUT}."
        )
    odd = next((row["accuracy"] for row in rows if not _is_share(row["accuracy"])), 0.0)
    if not _is_share(odd):
        raise InputError(f"{path} holds the accuracy {odd}, and it is a share from 0 to 1; {_WAY_OUT}.")
    return {row["domain"]: row["accuracy"] for row in rows if row["round"] == run.rounds - 1}


def by_seed(name: str, runs: Sequence[Run]) -> dict[int | None, dict[str, float]]:
    """Return the accuracy of each domain in the last round, of each run of a cell that kept metrics.

    Raises:
        InputError: some runs of the cell kept metrics and others did not, as above.
    """
    found = {run.path: last_round(run) for run in runs}
    missing = next((path for path, last in found.items() if not last), None)
    if missing is not None and any(found.values()):
        raise InputError(
            f"{missing / 'metrics.parquet'} is missing, and other runs of cell {name} have theirs; restore it, or "
            f"remove {missing} and train it again."
        )
    return {run.info.seed: found[run.path] for run in runs if found[run.path]}


def seconds(run: Run) -> float | None:
    """Return the training time of a run, its share of its batch's; ``None`` if that was not kept.

    Raises:
        InputError: the file holds no such time.
    """
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
