"""What no audit finds: numbers out of their range, and verdicts that do not follow."""

from collections.abc import Iterator

from attacks.statistics.estimate import Estimate
from reports.findings import CellFindings, Findings, Taken, Verdict

_WORST_FIRST = list(Verdict)


def impossible(findings: Findings) -> str | None:
    """Return the first thing in some findings that no audit finds, in words; ``None`` if there is none."""
    worst = min((cell.verdict for cell in findings.cells), key=_WORST_FIRST.index, default=Verdict.OK)
    if findings.verdict is not worst:
        return f"verdict {findings.verdict.value}, and the worst of its cells is {worst.value}"
    return next((found for cell in findings.cells for found in _of_cell(cell)), None)


def _of_cell(cell: CellFindings) -> Iterator[str]:
    if cell.promised is not None:
        claim = cell.promised.claim
        if not claim.epsilon >= 0:
            yield f"ε {claim.epsilon:g} in {cell.name}, and none is below 0"
        if cell.verdict is Verdict.OK and not claim.covered:
            yield f"verdict OK in {cell.name}, whose claim is not covered"
    rates = {"accuracy": cell.cost.accuracy and cell.cost.accuracy.mean}
    for found in cell.taken:
        rates |= _rates(found)
    rates |= {f"the Top-1 of {i.attack}": i.top1 and i.top1.value for i in cell.inversions}
    for name, value in rates.items():
        if value is not None and not 0 <= value <= 1:
            yield f"{value:g} as {name} in {cell.name}, and it is a share from 0 to 1"


def _rates(found: Taken) -> dict[str, float | None]:
    """Return everything that one attack found and that is a share, by name."""
    named: dict[str, Estimate | None] = {
        "AUC": found.auc,
        "TPR": found.tpr and found.tpr.estimate,
        "best F1": found.best_f1,
        "AUC beside its family": found.compared and found.compared.auc,
    }
    return {
        **{
            f"the {name} of {found.attack}": value
            for name, estimate in named.items()
            if estimate is not None
            for value in (estimate.value, estimate.low, estimate.high, estimate.null)
            if value is not None and not 0 <= value <= 1
        },
        f"the ceiling of the AUC of {found.attack}": found.auc_ceiling,
        f"the predicted AUC of {found.attack}": found.predicted,
        f"the ceiling of the TPR of {found.attack}": found.tpr_ceiling,
        f"the p-value of {found.attack}": found.adjusted_p,
        f"the p-value against chance of {found.attack}": found.compared and found.compared.chance,
    }
