"""AUC, and accuracy, against the strength of each defense: a row per group of cells, a small panel per defense.

Source: Jiang and Shen (2026), Fig. 5 and 6, which have ProjRes alone.
"""

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attacks._base import Family
from reports.defense_cells import FAMILIES, DefenseCell, groups
from reports.figures import ink

_WIDEST, _NARROWEST, _LEFT, _RIGHT = 660.0, 400.0, 36.0, 8.0
_HEIGHT, _FOOT, _TOP, _KEY = 100.0, 32.0, 28.0, 22.0
_STEP, _GAP = 38.0, 0.9  # most points between two strengths; what is between two panels, in steps
_BESIDE = 0.18  # steps between the marks of two families

Draw = Callable[[Axes, Sequence[DefenseCell], np.ndarray], None]


def auc(cells: Sequence[DefenseCell]) -> Markup | None:
    """Return the AUC of every family's best attack by strength, as SVG; ``None`` if no cell has one."""
    with ink.drawing(title := "AUC of the best attack of each kind by strength of the defense"):
        figure = draw_auc(cells)
        return None if figure is None else ink.svg(figure, title)


def accuracy(cells: Sequence[DefenseCell]) -> Markup | None:
    """Return the accuracy by strength as SVG; ``None`` if no cell has one."""
    with ink.drawing(title := "Accuracy by strength of the defense"):
        figure = draw_accuracy(cells)
        return None if figure is None else ink.svg(figure, title)


def draw_auc(cells: Sequence[DefenseCell]) -> Figure | None:
    """Return the first of them as a figure."""
    figure = _rows([cell for cell in cells if cell.best], "AUC", _aucs, key=_KEY)
    if figure is not None:
        handles = [
            Line2D([], [], color=ink.attack_colour(i), marker=ink.mark(i), label=title, markersize=4)
            for i, title in enumerate(FAMILIES.values())
        ]
        limit = Line2D(
            [], [], color=ink.CEILING, linestyle=ink.DASHED, linewidth=1.2, label="ceiling of its noise"
        )
        none = Line2D([], [], color=ink.MUTED, linewidth=0.7, label="no skill")
        figure.legend(handles=[*handles, limit, none], ncols=5, **ink.BELOW)
    return figure


def draw_accuracy(cells: Sequence[DefenseCell]) -> Figure | None:
    """Return the second of them as a figure."""
    known = [cell for cell in cells if cell.accuracy is not None and cell.accuracy.mean is not None]
    return _rows(known, "accuracy", _accuracies)


def _rows(cells: Sequence[DefenseCell], what: str, draw: Draw, *, key: float = 0.0) -> Figure | None:
    rows = groups(cells)
    if not rows:
        return None
    places = [_places(row) for row in rows]
    steps = max(place[-1] for place in places) + 1.6
    across = float(np.clip(_STEP * steps, _NARROWEST, _WIDEST)) - _LEFT - _RIGHT
    each = _FOOT + _HEIGHT + _TOP + ink.HEADING * (len(rows) > 1)
    width, height = across + _LEFT + _RIGHT, key + each * len(rows)
    figure = Figure(figsize=(width / 72, height / 72))
    for i, (row, place) in enumerate(zip(rows, places, strict=True)):
        bottom = height - each * (i + 1) + _FOOT
        axes = figure.add_axes((_LEFT / width, bottom / height, across / width, _HEIGHT / height))
        axes.set(xlim=(-0.8, steps - 0.8), ylabel=what)
        draw(axes, row, place)
        _name_panels(axes, row, place)
        if len(rows) > 1:
            ink.heading(axes, row[0].where, up=_TOP)
    return figure


def _places(row: Sequence[DefenseCell]) -> np.ndarray:
    """Return where each cell stands: a step from the one before, more where another defense begins."""
    steps = [1.0 + _GAP * (a.defense != b.defense) for a, b in pairwise(row)]
    return np.cumsum([0.0, *steps])


def _panels(row: Sequence[DefenseCell]) -> list[tuple[str, slice]]:
    """Return each defense of a row, and which of its cells are of it."""
    found, start = [], 0
    for defense, cells in groupby(row, key=lambda cell: cell.defense):
        end = start + len(list(cells))
        found.append((defense, slice(start, end)))
        start = end
    return found


def _name_panels(axes: Axes, row: Sequence[DefenseCell], place: np.ndarray) -> None:
    axes.set_xticks(place, ["" if c.strength is None else ink.short(c.strength) for c in row], fontsize=6.5)
    axes.tick_params(axis="x", length=2, pad=2)
    for defense, part in _panels(row):
        at = float(place[part].mean())
        name = defense.replace("_", " ").replace(" (", "\n(")
        setting = row[part.start].varied.replace("_", " ")
        for text, side, below, up in ((name, 1, "bottom", 4), (setting, 0, "top", -13)):
            axes.annotate(
                text,
                (at, side),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, up),
                textcoords="offset points",
                fontsize=7.5,
                ha="center",
                va=below,
            )
        if part.start:
            axes.axvline(float(place[part.start]) - (1 + _GAP) / 2, color=ink.RULE, linewidth=0.7)


def _aucs(axes: Axes, row: Sequence[DefenseCell], place: np.ndarray) -> None:
    axes.axhline(0.5, color=ink.MUTED, linewidth=0.7)
    for cell, x in zip(row, place, strict=True):
        if cell.ceiling is not None:
            span = [x - 0.35, x + 0.35]
            axes.plot(span, [cell.ceiling] * 2, color=ink.CEILING, linewidth=1.2, linestyle=ink.DASHED)
    for i, family in enumerate(FAMILIES):
        for _, part in _panels(row):
            _curve(axes, row[part], place[part] + _BESIDE * (i - 1), family, i)
    axes.set_ylim(ink.from_chance([one.value for cell in row for one in cell.best.values()]))


def _curve(axes: Axes, cells: Sequence[DefenseCell], at: np.ndarray, family: Family, place: int) -> None:
    colour = ink.attack_colour(place)
    known = [(x, found) for x, cell in zip(at, cells, strict=True) if (found := cell.best.get(family))]
    for x, found in known:
        fill, auc = "none" if found.compared.tied else "full", found.compared.auc
        axes.plot(x, found.value, ink.mark(place), color=colour, markersize=4, fillstyle=fill)
        ink.interval(axes, x, auc.low, auc.high, colour=colour)
    axes.plot([x for x, _ in known], [found.value for _, found in known], color=colour, linewidth=0.9)


def _accuracies(axes: Axes, row: Sequence[DefenseCell], place: np.ndarray) -> None:
    colour = ink.attack_colour(0)
    found = [cell.accuracy for cell in row]
    means = np.array([np.nan if a is None else a.mean for a in found])
    for cell, mean in zip(row, means, strict=True):
        if not cell.protected:
            axes.axhline(mean, color=ink.MUTED, linewidth=0.7, linestyle=ink.DASHED)
    for _, part in _panels(row):
        axes.plot(place[part], means[part], color=colour, marker="o", markersize=4, linewidth=0.9)
    for x, a in zip(place, found, strict=True):
        if a is not None:
            ink.interval(axes, float(x), a.low, a.high, colour=colour)
    axes.locator_params(axis="y", nbins=5)
