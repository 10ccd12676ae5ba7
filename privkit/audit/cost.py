"""What it cost: accuracy, bytes and time."""

from collections.abc import Mapping, Sequence

import numpy as np

from attacks.statistics.seeds import OverSeeds, over_seeds
from privkit import atomic
from privkit.audit.cells import Cell
from privkit.audit.work import Work
from privkit.measured import Measured
from privkit.release import ByClass, Payload
from privkit.store import RunInfo
from privkit.transcript import Transcript
from reports.findings import Cost


def cost(work: Work, controls: Mapping[str, float]) -> Cost:
    """Return the cost of a cell.

    Args:
        work: whose cost.
        controls: accuracy of local training alone, by model.
    """
    cell, last = work.cell, _last_rounds(work)
    accuracy = _accuracy(last)
    return Cost(
        accuracy=accuracy,
        by_domain=_mean_by_domain(last),
        by_round=_mean_by_round(work.measured),
        per_seed={
            run.info.seed: float(np.mean(list(one.last.values())))
            for run, one in zip(cell.runs, work.measured, strict=True)
            if one.last and run.info.seed is not None
        },
        against_local=_difference(accuracy, controls.get(model_key(cell))),
        bytes_per_round=_bytes_sent(work.transcripts, cell.first.info) / cell.rounds,
        seconds=_seconds(work.measured),
    )


def controls(works: Sequence[Work]) -> dict[str, float]:
    """Return, for each model that a cell trains without releasing anything, its accuracy."""
    silent = [work for work in works if not work.cell.first.anchor.lines]
    found = {model_key(work.cell): _accuracy(_last_rounds(work)) for work in silent}
    return {model: a.mean for model, a in found.items() if a is not None and a.mean is not None}


def model_key(cell: Cell) -> str:
    """Return what two cells must share for their accuracies to be comparable: data, encoders, models and split."""
    config = cell.first.info.config
    return atomic.canonical_json(
        [config.get(part) for part in ("data", "encoder", "model", "mixed", "split")]
    )


def _last_rounds(work: Work) -> list[Mapping[str, float]]:
    return [one.last for one in work.measured if one.last]


def _mean_by_round(runs: Sequence[Measured]) -> tuple[float, ...]:
    """Return the mean over runs and domains, of each round."""
    rounds = zip(*(one.accuracies for one in runs), strict=True)
    return tuple(float(np.mean([a for found in round for a in found.values()])) for round in rounds)


def _accuracy(runs: Sequence[Mapping[str, float]]) -> OverSeeds | None:
    """Return the mean over domains of each run, over seeds; ``None`` if no run kept metrics."""
    means = [float(np.mean(list(by_domain.values()))) for by_domain in runs]
    return over_seeds(means) if means else None


def _mean_by_domain(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    domains = runs[0] if runs else {}
    return {name: float(np.mean([run[name] for run in runs])) for name in domains}


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


def _seconds(runs: Sequence[Measured]) -> float | None:
    spent = [one.seconds for one in runs if one.seconds is not None]
    return float(np.mean(spent)) if spent else None
