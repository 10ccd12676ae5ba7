"""The settings of every defense that FISGuard's evaluation compares, as sections of a configuration by name.

Source: Jiang and Shen (2026), V-A. FISGuard's own ranks are not in its text; those here are of this toolkit.
"""

from collections.abc import Mapping
from typing import Any

from privkit import plug
from privkit.finetune.defenses._base import AbstractTuningDefense

SWEPT: Mapping[str, tuple[float, ...]] = {
    "dpsgd": (0.1, 0.25, 0.5, 1.0, 2.0),
    "l2": (1e-4, 1e-3, 1e-2, 1e-1),
    "min_max": (0.1, 0.3, 1.0, 3.0, 10.0),
    "dropout": (0.05, 0.1, 0.2, 0.4),
    "label_smoothing": (0.02, 0.05, 0.1, 0.2, 0.4),
    "fisguard": (2, 4, 8, 16, 32, 64),
}
"""The values of each defense's ``varied`` setting."""


def defenses() -> dict[str, dict[str, Any]]:
    """Return the section ``defense`` of every cell, by the cell's name; all else is as a configuration has it.

    >>> defenses()["l2-0.01"]
    {'name': 'l2', 'strength': 0.01}
    """
    cells: dict[str, dict[str, Any]] = {"none": {"name": "none"}}
    for name, values in SWEPT.items():
        varied = _varied(name)
        cells |= {f"{name}-{value:g}": {"name": name, varied: value} for value in values}
    return cells


def _varied(name: str) -> str:
    found = plug.find("privkit.finetune.defenses", name)
    assert issubclass(found, AbstractTuningDefense)
    return found.varied
