"""An AUC that was expected beside the one that was measured: whether the law of the matched filter holds here."""

from reports import numbers
from reports.findings import CellFindings, Findings, Taken


def beside(found: Taken, measured: str) -> str:
    """Return an attack's AUC as tables print it, after the one that was expected of it, if any was.

    >>> beside(Taken(attack="matched_filter", tier="shadow", predicted=0.957), "0.956 [0.931, 0.975]")
    'predicted 0.957, measured 0.956 [0.931, 0.975]'
    """
    if found.predicted is None:
        return measured
    return f"predicted {numbers.rate(found.predicted)}, measured {measured}"


def notes(findings: Findings) -> list[str]:
    """Return what an expected AUC is, and where several rounds were asked about, both AUCs of each."""
    found = [(cell, t) for cell in findings.cells for t in cell.taken if t.predicted is not None]
    if not found:
        return []
    rounds = [line for cell, t in found if (line := _by_round(cell, t))]
    told = (
        "A predicted AUC is told from the attacker's own records and the event's noise, without any upload; it is of "
        "scores that are normal about each record."
    )
    return [
        " ".join([told, *(["Predicted / measured by round:", "; ".join(rounds) + "."] if rounds else [])])
    ]


def _by_round(cell: CellFindings, found: Taken) -> str:
    pairs = [
        f"{round + 1} {numbers.rate(expected)} / {numbers.rate(measured)}"
        for round, (expected, measured) in enumerate(
            zip(found.predicted_by_round, found.by_round, strict=False)
        )
        if expected is not None and measured is not None
    ]
    return f"{cell.name}, {found.attack}: {', '.join(pairs)}" if pairs else ""
