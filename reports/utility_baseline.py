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
    known = [*dict.fromkeys([*KINDS, *(cell.name for cell in cells)])]
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
    fitting = [other for other in cells if fits(cell, other)]
    found = [other for other in fitting if not _apart(cell, other)]
    near = [other for other in found if other.run == cell.run]
    if cell in found:
        return Baseline(cell)
    if not found:
        return Baseline(None, _no_baseline(cell, fitting, words, against))
    if len(near or found) > 1:
        names = ", ".join(other.name for other in near or found)
        return Baseline(None, f"several cells are {words} ({names}); name one with --against")
    return Baseline((near or found)[0])


def _no_baseline(cell: UtilityCell, fitting: Sequence[UtilityCell], words: str, against: str) -> str:
    if against not in KINDS and fitting:
        return f"cell {against} has {_apart(cell, fitting[0])}"
    return f"there is no {words}" if against in KINDS else f"there is no {words} as here"


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


_FEATURES = ("features", "encoder")
"""What may differ between two cells: another encoder may be what is asked about."""
_LABELS = slice(64, None)
"""Where the hash of the labels is in that of test records, after the one of their features."""


def _apart(cell: UtilityCell, other: UtilityCell) -> str:
    """Return what keeps the same seed from meaning the same records trained on and tested in both; empty if nothing."""
    if cell is other:
        return ""
    if not cell.data or not other.data:
        return "no hashes of its data"
    names = sorted({*cell.data, *other.data})
    odd = [name for name in names if _kind(name) not in _FEATURES and not _agree(cell, other, name)]
    if odd:
        return "other " + ", ".join(dict.fromkeys(_WORDS.get(_kind(name), _kind(name)) for name in odd))
    return "another split" if cell.config.get("split") != other.config.get("split") else ""


_WORDS = {
    "test": "test records",
    "things": "things shown",
    "left_out": "records left out",
    "classes": "classes",
}


def _agree(cell: UtilityCell, other: UtilityCell, name: str) -> bool:
    one, two = cell.data.get(name), other.data.get(name)
    if one == two or _kind(name) != "test" or one is None or two is None or _same_encoders(cell, other):
        return one == two
    # the hash is of features: under another encoder, labels and settings of the data are what can be compared
    return one[_LABELS] == two[_LABELS] and cell.config.get("data") == other.config.get("data")


def _same_encoders(cell: UtilityCell, other: UtilityCell) -> bool:
    names = {name for name in {*cell.data, *other.data} if _kind(name) in _FEATURES}
    return all(cell.data.get(name) == other.data.get(name) for name in names)


def _kind(name: str) -> str:
    return name.partition(".")[0]
