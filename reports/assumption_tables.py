"""What a claim leaves open: the assumptions that a run breaks, and what other neighbours would cost."""

import math

from accountant.assumptions import ASSUMPTIONS
from accountant.consequences import Broken
from reports import numbers
from reports.findings import CellFindings, Elsewhere, Findings
from reports.table import Column, Table

_STATEMENTS = {a.id: a.statement for a in ASSUMPTIONS}


def broken(findings: Findings) -> Table:
    """Return one row per cell and assumption that it breaks, with what that costs and how to see it."""
    return Table(
        columns=(
            Column(key="cell", title="cell"),
            Column(key="id", title="breaks"),
            Column(key="claimed", title="ε claimed", show=numbers.epsilon, right=True),
            Column(key="true", title="ε if priced", right=True, sort="epsilon"),
            Column(key="example", title="see privkit explain"),
            Column(key="cost", title="what it costs", rank=1),
            Column(key="reason", title="why it is broken", rank=2),
        ),
        rows=[
            {
                "cell": cell.name,
                "id": found.id,
                "claimed": cell.promised.claim.epsilon,
                "true": _priced(found),
                "epsilon": found.epsilon,
                "example": ", ".join(found.examples) or None,
                "cost": found.cost,
                "reason": found.reason,
                "statement": _STATEMENTS.get(found.id),
            }
            for cell in findings.cells
            if cell.promised
            for found in cell.promised.claim.broken
        ],
        extra=("epsilon", "statement"),
    )


def _priced(found: Broken) -> str:
    if found.epsilon is None:
        return "unknown"
    return "∞ (δ = 1)" if math.isinf(found.epsilon) else numbers.epsilon(found.epsilon)


def relations(findings: Findings) -> Table:
    """Return one row per cell that promises something: its epsilon under every neighbouring relation."""
    names = list(dict.fromkeys(e.relation for cell in findings.cells for e in _elsewhere(cell)))
    return Table(
        columns=(
            Column(key="cell", title="cell"),
            *(Column(key=name, title=name, right=True, sort=f"epsilon, {name}") for name in names),
        ),
        rows=[
            {
                "cell": cell.name,
                **{e.relation: _under(cell, e) for e in _elsewhere(cell)},
                **{f"epsilon, {e.relation}": e.epsilon for e in _elsewhere(cell)},
            }
            for cell in findings.cells
            if _elsewhere(cell)
        ],
        extra=tuple(f"epsilon, {name}" for name in names),
    )


def _under(cell: CellFindings, found: Elsewhere) -> str:
    """Return an epsilon under one relation, in brackets where the cell's own is no promise either."""
    if found.at_fixed_counts is not None:
        return f"∞ ({numbers.epsilon(found.at_fixed_counts)} at fixed counts)"
    if found.epsilon is None:
        return "undefined"
    assert cell.promised is not None
    text = numbers.epsilon(found.epsilon)
    return text if cell.promised.claim.covered else f"({text})"


def undefined(findings: Findings) -> list[str]:
    """Return why some cells have no epsilon under some relation, one sentence each."""
    found = (e.reason for cell in findings.cells for e in _elsewhere(cell) if e.epsilon is None)
    return list(dict.fromkeys(found))


def _elsewhere(cell: CellFindings) -> tuple[Elsewhere, ...]:
    if cell.promised is None or not math.isfinite(cell.promised.claim.epsilon):
        return ()
    return cell.promised.elsewhere
