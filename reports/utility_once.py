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
        twin = next((other for other in kept if _shared(cell, other)), None)
        if twin is None:
            kept.append(cell)
        elif _runs(cell) == _runs(twin):
            said.append(f"{cell.run}: {cell.name} is the same runs as in {twin.run} and counts once.")
        else:
            raise InputError(
                f"{twin.run} and {cell.run} share {len(_shared(cell, twin))} of the runs of cell {cell.name}, and each "
                "run may count once; give one of the two folders."
            )
    return kept, said


def _shared(cell: UtilityCell, other: UtilityCell) -> set[str]:
    return _runs(cell) & _runs(other)


def _runs(cell: UtilityCell) -> set[str]:
    return {canonical_json([cell.name, cell.config, cell.data, mark]) for mark in cell.marks}
