"""A configuration file: one run, or a study of several cells and seeds.

A study is a base configuration and, under ``cells``, what each cell changes; ``grid`` writes cells as products of
named changes (:mod:`privkit.grid`). A section of a cell is merged into the base's, unless it names another plug-in:
then it replaces it. Keys tell which kind of federation a file is about: one that tunes a transformer has a ``tuning``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Generic

from typing_extensions import TypeVar

from privkit import grid
from privkit.config import RunConfig
from privkit.configuration import Configuration
from privkit.document import document, mapping
from privkit.errors import InputError

Config = TypeVar("Config", bound=Configuration, default=RunConfig)
_TUNES = "tuning"
_NO_NAME = re.compile(r"[^\w.-]")
_LONGEST = 200
"""Most bytes of a cell's name: file systems take 255, and names are put beside others."""


@dataclass(frozen=True)
class Study(Generic[Config]):
    """Named cells, each run with the seeds ``0 ... seeds-1``.

    Attributes:
        cells: by name, in the order of the file.
        seeds: runs of each.
        partial: whether other cells of the same file are left out.
    """

    cells: dict[str, Config]
    seeds: int
    partial: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(Generic[Config]):
    """One run to be trained: its configuration, its seed and where it goes (a path below the study)."""

    name: str
    cell: str
    seed: int
    config: Config


def plans(study: Study[Config]) -> list[Plan[Config]]:
    """Return every run of a study; a whole study of one cell and one seed is a single run, named ``.``."""
    single = len(study.cells) == 1 and study.seeds == 1 and not study.partial
    return [
        Plan(name="." if single else f"{cell}/seed-{seed}", cell=cell, seed=seed, config=config)
        for cell, config in study.cells.items()
        for seed in range(study.seeds)
    ]


def refuse_single_run(root: Path, todo: list[Plan[Config]]) -> None:
    """Raise if a folder is a run itself, where those of several cells or seeds belong below it."""
    if todo[0].name != "." and (root / "run.json").exists():
        raise InputError(f"{root} holds a single run; train several cells or seeds into a new --out folder.")


def tunes(path: Path) -> bool:
    """Return whether a file is about a federation that tunes a transformer, in every cell or in one."""
    found = mapping(path)
    points = _points(path, {name: found[name] for name in ("cells", "grid") if name in found})
    return _TUNES in found or any(_TUNES in change for point in points for change in point.changes)


def load(path: Path, *, seeds: int | None = None) -> Study:
    """Return the study that a YAML file describes; ``seeds`` overrides the file's.

    Without ``cells`` and ``grid``, there is one cell, named after the file.
    """
    return load_as(RunConfig, path, seeds=seeds)


def load_as(kind: type[Config], path: Path, *, seeds: int | None = None) -> Study[Config]:
    """Return the study whose runs are configurations of one kind; see :func:`load`."""
    base = document(path, known=(*kind.model_fields, "grid", "cells", "seeds"))
    count = base.pop("seeds", 1) if seeds is None else seeds
    base.pop("seeds", None)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"{path}: seeds={count!r}; give a whole number of at least 1.")
    points = _points(path, {name: base.pop(name) for name in ("cells", "grid") if name in base})
    built: dict[str, Config] = {}
    for point in points:
        name = _cell_name(path, point.name)
        if name in built:
            raise InputError(f"{path}: cell name {name!r} appears twice; rename one of the two.")
        where = f"{path} {point.where}" if len(points) > 1 else str(path)
        built[name] = kind.from_settings(reduce(merged, point.changes, base), where=where)
    return Study(cells=built, seeds=count)


def _points(path: Path, sections: dict[str, Any]) -> list[grid.Point]:
    """Return the cells that a file names, then those of its grids; one named after it if it has neither section."""
    if not sections:
        return [grid.Point(name=_name_from(path), where="", changes=())]
    found = list(_cells(path, sections["cells"])) if "cells" in sections else []
    return found + (list(grid.points(sections["grid"], where=str(path))) if "grid" in sections else [])


def _cells(path: Path, cells: Any) -> Iterator[grid.Point]:
    if not isinstance(cells, dict) or not cells:
        raise InputError(f"{path}: cells is {cells!r}; write one name per cell, its changes below it.")
    for name, changes in cells.items():
        grid.refuse_no_name(name, f"{path} cells", "a cell")
        yield grid.Point(name=str(name), where=f"cell {name}", changes=(_changes(path, name, changes),))


def _changes(path: Path, cell: Any, changes: Any) -> dict[str, Any]:
    if not isinstance(changes, dict | None):
        raise InputError(f"{path} cell {cell} is {changes!r}; write what the cell changes below its name.")
    return changes or {}


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return a base with changes laid over it, section by section.

    >>> merged({"defense": {"name": "igpp", "epsilon": 1}}, {"defense": {"epsilon": 8}})
    {'defense': {'name': 'igpp', 'epsilon': 8}}
    >>> merged({"defense": "igpp"}, {"defense": {"epsilon": 8}})
    {'defense': {'name': 'igpp', 'epsilon': 8}}
    >>> merged({"defense": {"name": "igpp", "epsilon": 1}}, {"defense": "none"})
    {'defense': 'none'}
    """
    return base | {key: _merged_section(base.get(key), value) for key, value in changes.items()}


def _merged_section(before: Any, after: Any) -> Any:
    if not isinstance(before, dict) and not isinstance(after, dict):
        return after
    # a bare name stands for the section that holds nothing else
    old, new = ({"name": v} if isinstance(v, str) else v for v in (before, after))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return after
    return merged(old, new) if new.get("name", old.get("name")) == old.get("name") else after


def _cell_name(path: Path, name: Any) -> str:
    text = str(name)
    if not text or _NO_NAME.search(text) or text.startswith(".") or text in ("audit", "run.json"):
        raise InputError(
            f"{path}: cell name {name!r} cannot name a folder; use letters, digits, - _ and dots."
        )
    if len(text.encode()) > _LONGEST:
        raise InputError(
            f"{path}: cell name {text[:20]}... has {len(text.encode())} bytes and names a folder; "
            f"use at most {_LONGEST}."
        )
    return text


def _name_from(path: Path) -> str:
    """Return a cell name for a file that names none."""
    return _NO_NAME.sub("-", path.stem).lstrip(".") or "run"
