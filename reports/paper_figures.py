"""Figures as files that a paper includes, over any number of audits."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from privkit import atomic
from reports.defense_cells import DefenseCell
from reports.figures import by_strength, ink, privacy_utility

FIGURES: Mapping[str, Callable[[Sequence[DefenseCell]], Figure | None]] = {
    "privacy-utility": privacy_utility.draw,
    "auc-by-strength": by_strength.draw_auc,
    "accuracy-by-strength": by_strength.draw_accuracy,
}
_DATELESS: Mapping[str, dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}


def write(cells: Sequence[DefenseCell], folder: Path) -> list[Path]:
    """Write every figure about defenses that the cells have the numbers for, and return the files."""
    return [file for name, draw in FIGURES.items() for file in write_one(name, partial(draw, cells), folder)]


def write_one(name: str, draw: Callable[[], Figure | None], folder: Path) -> list[Path]:
    """Write one figure, if there is one to draw, as PNG, SVG and PDF, and return the files."""
    with ink.printing(), ink.drawing(name):
        figure = draw()
        if figure is None:
            return []
        return [_save(figure, folder / f"{name}.{kind}", kind) for kind in _DATELESS]


def _save(figure: Figure, path: Path, kind: str) -> Path:
    look = {"dpi": 300, "facecolor": "white", "metadata": _DATELESS[kind]}
    atomic.write_with(path, lambda file: figure.savefig(file, format=kind, **look))
    return path
