"""Every run counts once, under however many paths it is given: copies are recognised by what they released."""

from collections.abc import Sequence

from privkit.atomic import canonical_json
from privkit.errors import InputError
from reports.utility_cells import UtilityCell


def once(cells: Sequence[UtilityCell]) -> tuple[list[UtilityCell], list[str]]:
    """Return cells without those that are the same runs as an earlier one, and a sentence about each left out.

    Raises:
        InputError: two cells share some of their runs, not all.
    """
    kept: list[UtilityCell] = []
    said: list[str] = []
    for cell in cells:
        found = twin(cell, kept)
        if found is None:
            kept.append(cell)
        else:
            said.append(f"{cell.run}: {cell.name} is the same runs as in {found.run} and counts once.")
    return kept, said


def twin(cell: UtilityCell, kept: Sequence[UtilityCell]) -> UtilityCell | None:
    """Return the first of some cells that is the same runs as another cell, if there is one.

    Raises:
        InputError: one of them shares some of its runs, not all.
    """
    other = next((other for other in kept if _runs(cell) & _runs(other)), None)
    if other is not None and _runs(cell) != _runs(other):
        raise InputError(
            f"{other.run} and {cell.run} share {len(_runs(cell) & _runs(other))} of the runs of cell {cell.name}, and "
            "each run may count once; give one of the two folders."
        )
    return other


def _runs(cell: UtilityCell) -> set[str]:
    return {canonical_json([cell.name, cell.config, cell.data, mark]) for mark in cell.marks}
