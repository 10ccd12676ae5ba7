"""What a malicious server gained: every cell that one served, beside the same cell with an honest server.

Both were run with the same seeds, so the differences of each seed are taken. What is compared is only what the server
changes: data, split, noise and the order of batches are the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from reports import numbers
from reports.findings import CellFindings, Findings
from reports.table import Column, Table
from reports.utility_paired import paired

_HONEST = "honest"
_MEASURES = {
    "cosine": "cosine to the clean class mean",
    "centred": "centred cosine",
    "top1": "Top-1",
    "psnr": "PSNR, dB",
    "ssim": "SSIM",
    "rank": "rank of nearest member",
}

Values = dict[int, float]
"""A number per seed."""


def gains(findings: Findings) -> Table:
    """Return one row per cell with a malicious server and measure; none where no cell has an honest twin."""
    by_name = {cell.name: cell for cell in findings.cells}
    rows = [
        _row(cell, twin, what, measured, beside[what])
        for cell, twin, seeds in _twins(findings, by_name)
        for beside in [dict(_measures(twin, seeds))]
        for what, measured in _measures(cell, seeds)
        if what in beside
    ]
    return Table(
        columns=(
            Column(key="cell", title="cell"),
            Column(key="twin", title="honest twin"),
            Column(key="measure", title="measure"),
            Column(key="honest", title="honest", show=numbers.rounded, right=True),
            Column(key="malicious", title="malicious", show=numbers.rounded, right=True),
            Column(key="gain_text", title="gain [95 %]", right=True, sort="gain"),
            Column(key="seeds", title="seeds", show=numbers.count, right=True),
            Column(key="p", title="p", show=numbers.p_value, right=True),
        ),
        rows=rows,
        extra=("gain", "low", "high"),
        notes=(
            "Differences of each seed; t intervals and p-values over seeds, not corrected for their number.",
        ),
    )


def _twins(
    findings: Findings, by_name: Mapping[str, CellFindings]
) -> Iterator[tuple[CellFindings, CellFindings, list[int]]]:
    """Yield every cell that a malicious server served, its honest twin, and the seeds of both."""
    runs = findings.provenance.get("runs", {})
    assert isinstance(runs, dict)
    honest = [name for name, run in runs.items() if _server(run) == _HONEST]
    for name, run in runs.items():
        twin = next((other for other in honest if _beside(runs[other]) == _beside(run)), None)
        if _server(run) != _HONEST and twin is not None and run["seeds"] == runs[twin]["seeds"]:
            yield by_name[name], by_name[twin], run["seeds"]


def _server(run: Mapping[str, Any]) -> str:
    """Return the name of a run's server."""
    return (run["config"].get("server") or {"name": _HONEST})["name"]


def _beside(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything of a configuration but its server."""
    return {name: value for name, value in run["config"].items() if name != "server"}


def _measures(cell: CellFindings, seeds: list[int]) -> Iterator[tuple[str, Values]]:
    """Yield the name of every measure that a cell has for each of its seeds, and its values."""
    if cell.cost.per_seed:
        yield "accuracy", dict(cell.cost.per_seed)
    for found in cell.taken:
        each = {seed: auc for seed, auc in zip(seeds, found.auc_of_run, strict=False) if auc is not None}
        if each and found.tier != "design":
            yield f"AUC of {found.attack}", each
    for made in cell.inversions:
        for name, title in _MEASURES.items():
            each = {seed: run[name] for seed, run in zip(seeds, made.of_run, strict=False)}
            if each:
                yield f"{title}, {made.attack} ({made.tier})", each


def _row(cell: CellFindings, twin: CellFindings, what: str, one: Values, other: Values) -> dict[str, Any]:
    found = paired(one, other)
    gain = found.difference
    return {
        "cell": cell.name,
        "twin": twin.name,
        "measure": what,
        "honest": _mean(other),
        "malicious": _mean(one),
        "gain": gain.mean,
        "low": gain.low,
        "high": gain.high,
        "gain_text": numbers.interval(gain.mean, gain.low, gain.high),
        "seeds": gain.n,
        "p": found.p_t,
    }


def _mean(values: Values) -> float:
    return sum(values.values()) / len(values)
