"""Cells as the product of axes: every data set with every method with every defense, each named once."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from privkit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Point:
    """One cell of a grid.

    Attributes:
        name: the names of its values, in the order of the axes, joined by ``-``.
        where: grid, axes and values in words.
        changes: what each of its values changes, in that order: the later ones are laid over the earlier.
    """

    name: str
    where: str
    changes: tuple[dict[str, Any], ...]


def points(grids: Any, *, where: str) -> Iterator[Point]:
    """Yield the cells of one grid, or of a list of grids, the last axis varying fastest.

    Args:
        grids: axes by name; of each, changes by the name of a value.
        where: the file, for messages.

    Raises:
        InputError: a grid has no axis, an axis no value, one of them no name, or a value is no mapping of changes.

    >>> grid = {"method": {"fedproto": {}}, "defense": {"igpp": {}, "vpp": None}}
    >>> [point.name for point in points(grid, where="study.yaml")]
    ['fedproto-igpp', 'fedproto-vpp']
    """
    listed = grids if isinstance(grids, list) and grids else [grids]
    for number, grid in enumerate(listed, start=1):
        place = f"grid {number}" if len(listed) > 1 else "grid"
        axes = _named(grid, f"{where} {place}", "axes such as data: and defense:")
        for axis in axes:
            refuse_no_name(axis, f"{where} {place}", "an axis")
        values = [list(_values(axis, held, f"{where} {place}")) for axis, held in axes.items()]
        for chosen in itertools.product(*values):
            said = ", ".join(f"{axis} {name}" for axis, name, _ in chosen)
            yield Point(
                name="-".join(name for _, name, _ in chosen),
                where=f"{place} ({said})",
                changes=tuple(changes for _, _, changes in chosen),
            )


def _values(axis: Any, held: Any, where: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield axis, name and changes of each value of an axis."""
    for name, changes in _named(
        held, f"{where} axis {axis}", "its values, and below each what it changes"
    ).items():
        refuse_no_name(name, f"{where} axis {axis}", "a value")
        if not isinstance(changes, dict | None):
            raise InputError(
                f"{where} axis {axis} value {name} is {changes!r}; write what it changes below its name."
            )
        yield str(axis), str(name), changes or {}


def refuse_no_name(name: Any, where: str, what: str) -> None:
    """Raise if YAML read a name as something else, as it does with no, yes, on, off, null and ~, or if it is empty."""
    if name is None or isinstance(name, bool):
        raise InputError(f"{where}: YAML reads {what}'s name as {name}; write it in quotes.")
    if name == "":
        raise InputError(f"{where}: {what}'s name is empty; give it one.")


def _named(found: Any, what: str, wanted: str) -> dict[Any, Any]:
    if not isinstance(found, dict) or not found:
        raise InputError(f"{what} is {found!r}; write {wanted}.")
    return found
