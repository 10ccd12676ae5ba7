"""The settings of every defense that FISGuard's evaluation compares, as sections of a configuration by name.

Source: Jiang and Shen (2026), V-A. FISGuard's own ranks are not in its text; those here are of this toolkit.
"""

from collections.abc import Mapping
from typing import Any

SWEPT: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "dpsgd": ("noise_multiplier", (0.1, 0.25, 0.5, 1.0, 2.0)),
    "l2": ("strength", (1e-4, 1e-3, 1e-2, 1e-1)),
    "min_max": ("strength", (0.1, 0.3, 1.0, 3.0, 10.0)),
    "dropout": ("p", (0.05, 0.1, 0.2, 0.4)),
    "label_smoothing": ("alpha", (0.02, 0.05, 0.1, 0.2, 0.4)),
    "fisguard": ("rank", (2, 4, 8, 16, 32, 64)),
}
"""What is varied of each defense, and its values."""


def defenses() -> dict[str, dict[str, Any]]:
    """Return the section ``defense`` of every cell, by the cell's name; all else is as a configuration has it.

    >>> defenses()["l2-0.01"]
    {'name': 'l2', 'strength': 0.01}
    """
    cells: dict[str, dict[str, Any]] = {"none": {"name": "none"}}
    for name, (field, values) in SWEPT.items():
        cells |= {f"{name}-{value:g}": {"name": name, field: value} for value in values}
    return cells
