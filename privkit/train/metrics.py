"""Accuracy per round and client, as a small parquet table."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from privkit import atomic


def write_metrics(
    path: Path, rows: list[dict[str, float | int]], domains: Mapping[int, str] | Sequence[str]
) -> None:
    """Replace a run's metrics: round, client (-1 for a newcomer), domain and accuracy on its own test records."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "round": pa.array([row["round"] for row in rows], pa.int64()),
            "client": pa.array([row["client"] for row in rows], pa.int64()),
            "domain": pa.array([domains[int(row["client"])] for row in rows], pa.string()),
            "accuracy": pa.array([row["accuracy"] for row in rows], pa.float64()),
        }
    )
    ordered = table.sort_by([("round", "ascending"), ("client", "ascending")])
    atomic.write_with(path / "metrics.parquet", lambda tmp: pq.write_table(ordered, tmp), durable=False)
