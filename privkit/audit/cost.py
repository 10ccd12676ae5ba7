"""What it cost: accuracy, bytes and time."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attacks.statistics.seeds import OverSeeds, over_seeds
from privkit import atomic
from privkit.audit.cells import Cell
from privkit.release import ByClass, Payload
from privkit.store import Run, RunInfo
from privkit.transcript import Transcript
from reports.findings import Cost


def cost(cell: Cell, transcripts: Sequence[Transcript], controls: dict[str, float]) -> Cost:
    """Return the cost of a cell.

    Args:
        cell: whose cost.
        transcripts: of its runs, in their order.
        controls: accuracy of local training alone, by model.
    """
    last = [_last_round(run) for run in cell.runs]
    accuracy = _accuracy(last)
    return Cost(
        accuracy=accuracy,
        by_domain=_mean_by_domain(last),
        by_round=_mean_by_round(cell.runs),
        per_seed={
            run.info.seed: float(np.mean(list(found.values())))
            for run, found in zip(cell.runs, last, strict=True)
            if found and run.info.seed is not None
        },
        against_local=_difference(accuracy, controls.get(model_key(cell))),
        bytes_per_round=_bytes_sent(transcripts, cell.first.info) / cell.rounds,
        seconds=_seconds(cell),
    )


def controls(cells: list[Cell]) -> dict[str, float]:
    """Return, for each model that a cell trains without releasing anything, its accuracy."""
    silent = [cell for cell in cells if not cell.first.anchor.lines]
    found = {model_key(cell): _accuracy([_last_round(run) for run in cell.runs]) for cell in silent}
    return {model: a.mean for model, a in found.items() if a is not None and a.mean is not None}


def model_key(cell: Cell) -> str:
    """Return what two cells must share for their accuracies to be comparable: data, encoders, models and split."""
    config = cell.first.info.config
    return atomic.canonical_json(
        [config.get(part) for part in ("data", "encoder", "model", "mixed", "split")]
    )


def _metrics(run: Run) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    path = run.path / "metrics.parquet"
    return pq.read_table(path).to_pylist() if path.exists() else []


def _last_round(run: Run) -> dict[str, float]:
    rows = _metrics(run)
    last = max((row["round"] for row in rows), default=None)
    return {row["domain"]: row["accuracy"] for row in rows if row["round"] == last}


def _mean_by_round(runs: Sequence[Run]) -> tuple[float, ...]:
    found: dict[int, list[float]] = {}
    for run in runs:
        for row in _metrics(run):
            found.setdefault(row["round"], []).append(row["accuracy"])
    return tuple(float(np.mean(found[round])) for round in sorted(found))


def _accuracy(runs: list[dict[str, float]]) -> OverSeeds | None:
    """Return the mean over domains of each run, over seeds; ``None`` if no run kept metrics."""
    means = [float(np.mean(list(by_domain.values()))) for by_domain in runs if by_domain]
    return over_seeds(means) if means else None


def _mean_by_domain(runs: list[dict[str, float]]) -> dict[str, float]:
    domains = runs[0] if runs else {}
    return {name: float(np.mean([run[name] for run in runs if name in run])) for name in domains}


def _difference(accuracy: OverSeeds | None, control: float | None) -> float | None:
    if accuracy is None or accuracy.mean is None or control is None:
        return None
    return accuracy.mean - control


def _bytes_sent(transcripts: Sequence[Transcript], info: RunInfo) -> float:
    """Return how many bytes a client sent over a whole run, on average, prototypes of canaries not counted."""
    sent = [
        sum(_own_bytes(r.payload, info.num_classes) for r in transcript.releases if r.client == client)
        for transcript in transcripts
        for client in transcript.clients
    ]
    return float(np.mean(sent)) if sent else 0.0


def _own_bytes(payload: Payload, num_classes: int) -> int:
    own = payload.only(payload.labels < num_classes) if isinstance(payload, ByClass) else payload
    return own.nbytes


def _seconds(cell: Cell) -> float | None:
    spent = []
    for run in cell.runs:
        path = run.path / "timing.json"
        if path.exists():
            timing = atomic.read_json(path)
            spent.append(timing["seconds"] / timing["runs_in_batch"])
    return float(np.mean(spent)) if spent else None
