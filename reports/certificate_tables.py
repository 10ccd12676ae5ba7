"""Epsilon certified from below: every method side by side, each with what it assumes or why it does not apply."""

from typing import Any

from attacks.statistics.certify.certificate import Certificate, NoCertificate
from reports.findings import CellFindings, Findings, Taken
from reports.table import Column, Table


def _digits(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3g}"


_COLUMNS = (
    Column(key="cell", title="cell"),
    Column(key="attack", title="canaries"),
    Column(key="method", title="method"),
    Column(key="epsilon_low", title="ε ≥ (95 %)", show=_digits, right=True),
    Column(key="mu_low", title="μ ≥", show=lambda v: "" if v is None else f"{v:.3g}", right=True),
    Column(key="basis", title="if this is so, or why not"),
    Column(key="evidence", title="evidence", rank=1),
)


def certified(findings: Findings) -> Table:
    """Return one row per cell, attack on canaries and method."""
    rows = [
        _row(cell, taken, one)
        for cell in findings.cells
        for taken in cell.taken
        for one in taken.certificates
    ]
    extra = ("delta", "level", "assumptions", "threshold_source", "reason")
    return Table(columns=_COLUMNS, rows=rows, extra=extra)


def _row(cell: CellFindings, taken: Taken, one: Certificate | NoCertificate) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": cell.name, "attack": taken.attack, "method": one.method}
    if isinstance(one, NoCertificate):
        return row | {"basis": f"n/a: {one.reason}", "evidence": "", "reason": one.reason}
    assumed = "; ".join(one.assumptions)
    return row | {
        "epsilon_low": one.epsilon_low,
        "mu_low": one.mu_low,
        "basis": assumed,
        "evidence": one.evidence,
        "delta": one.delta,
        "level": one.level,
        "assumptions": assumed,
        "threshold_source": one.threshold_source,
    }
