"""What an attack got out of the same runs counts once, under however many paths their audits are given."""

from collections.abc import Sequence
from dataclasses import replace

from reports import utility_cells
from reports.findings import CellFindings, Findings, Taken
from reports.utility_cells import UtilityCell
from reports.utility_once import twin

Audit = tuple[str, Findings]


def once(audits: Sequence[Audit]) -> tuple[list[Audit], list[str]]:
    """Return audits without what an earlier one found of the same runs, and a sentence about each cell that lost any.

    An attack with other settings finds something else of the same runs, and stays.

    Raises:
        InputError: two audits share some of the runs of a cell, not all.
    """
    kept: list[UtilityCell] = []
    said: list[str] = []
    found = []
    for run, findings in audits:
        cells = []
        for cell, known in zip(findings.cells, utility_cells.of_findings(run, findings), strict=True):
            other = twin(known, kept)
            kept.append(known)
            left = cell if other is None else _without(cell, _seen(known, kept[:-1]))
            cells.append(left)
            if other is not None and len(left.taken) < len(cell.taken):
                said.append(f"{run}: {cell.name} is the same runs as in {other.run} and counts once.")
        found.append((run, replace(findings, cells=tuple(cells))))
    return found, said


def _seen(cell: UtilityCell, kept: Sequence[UtilityCell]) -> list[Taken]:
    """Return what attacks got out of a cell's runs, in all audits before."""
    same = [other.audited for other in kept if twin(cell, [other]) is not None]
    return [_itself(taken) for audited in same if audited is not None for taken in audited.taken]


def _without(cell: CellFindings, seen: Sequence[Taken]) -> CellFindings:
    return replace(cell, taken=tuple(taken for taken in cell.taken if _itself(taken) not in seen))


def _itself(taken: Taken) -> Taken:
    """Return what an attack got, without the p-value that depends on what else was audited with it."""
    return replace(taken, adjusted_p=None)
