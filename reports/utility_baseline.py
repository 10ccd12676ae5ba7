"""Which cell another is compared with: same records, same split, same model, same method, another defense."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from privkit import plug
from privkit.errors import InputError
from reports.utility_cells import UtilityCell


class Baseline(NamedTuple):
    """What a cell is compared with, or why with nothing."""

    cell: UtilityCell | None
    reason: str = ""


Fits = Callable[[UtilityCell, UtilityCell], bool]


def _igpp(cell: UtilityCell, other: UtilityCell) -> bool:
    return _name(other.defense) == "igpp" and _same_method(cell, other) and cell.epsilon == other.epsilon


def _undefended(cell: UtilityCell, other: UtilityCell) -> bool:
    return _name(other.defense) == "none" and _same_method(cell, other)


def _alone(cell: UtilityCell, other: UtilityCell) -> bool:
    return (
        _name(other.method) == "local_only"
        and _name(other.defense) == "none"
        and cell.method.get("training") == other.method.get("training")
        and _same_model(cell, other)
    )


KINDS: dict[str, tuple[str, Fits]] = {
    "igpp": ("igpp at the same epsilon, with the same data, model and method", _igpp),
    "none": ("no defense, with the same data, model and method", _undefended),
    "local_only": ("local training of the same model on the same data", _alone),
}
"""Baselines that every cell may have its own of: in words, and whether another cell is one."""


def refuse_unknown(against: str, cells: Sequence[UtilityCell]) -> None:
    """Raise if a baseline is neither a kind of baseline nor a cell.

    Raises:
        InputError: it is neither.
    """
    known = [*KINDS, *dict.fromkeys(cell.name for cell in cells)]
    if against not in known:
        raise InputError(plug.unknown("baseline", against, known=known))


def baseline(cell: UtilityCell, cells: Sequence[UtilityCell], against: str) -> Baseline:
    """Return the cell that another is compared with; where several fit, that of its own folder.

    Args:
        cell: that is compared.
        cells: all that there are.
        against: ``igpp``, ``none``, ``local_only``, or a cell's name.
    """
    words, fits = KINDS.get(against, (f"cell {against} with the same records and split", _named(against)))
    found = [other for other in cells if _same_records(cell, other) and fits(cell, other)]
    near = [other for other in found if other.run == cell.run]
    if cell in found:
        return Baseline(cell)
    if not found:
        return Baseline(None, f"there is no {words}" if against in KINDS else f"there is no {words} as here")
    if len(near or found) > 1:
        names = ", ".join(other.name for other in near or found)
        return Baseline(None, f"several cells are {words} ({names}); name one with --against")
    return Baseline((near or found)[0])


def _named(name: str) -> Fits:
    return lambda cell, other: other.name == name


def _name(section: Mapping[str, Any]) -> str | None:
    return section.get("name")


def _same_method(cell: UtilityCell, other: UtilityCell) -> bool:
    return cell.method == other.method and _same_model(cell, other)


def _same_model(cell: UtilityCell, other: UtilityCell) -> bool:
    """Return whether both train the same on the same features."""
    parts = ("model", "mixed", "rounds", "precision")
    return cell.data == other.data and all(cell.config.get(part) == other.config.get(part) for part in parts)


def _same_records(cell: UtilityCell, other: UtilityCell) -> bool:
    """Return whether the same seed gave both the same records, on the same sides of the split.

    Features may differ: another encoder may be what is asked about.
    """
    return (
        bool(cell.data)
        and _records(cell) == _records(other)
        and cell.config.get("split") == other.config.get("split")
    )


def _records(cell: UtilityCell) -> dict[str, str]:
    return {name: sha256 for name, sha256 in cell.data.items() if name.startswith(("records.", "labels."))}
