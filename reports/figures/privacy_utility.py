"""What attacks find against what a defense costs in accuracy: every strength of every defense, a panel per family.

Source: Jiang and Shen (2026), Fig. 3, which has ProjRes alone.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from attacks._base import Family
from reports.defense_cells import FAMILIES, DefenseCell, groups
from reports.figures import ink

_WIDTH, _HEIGHT, _FOOT, _KEY = 660.0, 140.0, 30.0, 40.0
_LEFT, _RIGHT, _BETWEEN = 36.0, 8.0, 12.0
_SMALLEST, _GROWS = (
    3.5,
    0.9,
)  # size of a mark in points: of the least strength, and what each further one adds


def privacy_utility(cells: Sequence[DefenseCell]) -> Markup | None:
    """Return AUC against accuracy as SVG; ``None`` if no cell has both."""
    with ink.drawing(title := "AUC of the best attack of each kind against accuracy"):
        figure = draw(cells)
        return None if figure is None else ink.svg(figure, title)


def draw(cells: Sequence[DefenseCell]) -> Figure | None:
    """Return the same as a figure: a row per group of cells that differ in the defense alone, a column per family."""
    rows = groups([cell for cell in cells if cell.best and _accuracy(cell) is not None])
    if not rows:
        return None
    top = 20.0 if len(rows) == 1 else 28.0 + ink.HEADING
    each = _FOOT + _HEIGHT + top
    height = each * len(rows) + _KEY
    figure = Figure(figsize=(_WIDTH / 72, height / 72))
    width = (_WIDTH - _LEFT - _RIGHT + _BETWEEN) / len(FAMILIES)
    places = {name: i for i, name in enumerate(dict.fromkeys(c.defense for row in rows for c in row))}
    for i, row in enumerate(rows):
        bottom = height - each * (i + 1) + _FOOT
        for j, family in enumerate(FAMILIES):
            corner = ((_LEFT + j * width) / _WIDTH, bottom / height)
            size = ((width - _BETWEEN) / _WIDTH, _HEIGHT / height)
            axes = figure.add_axes((*corner, *size))
            _panel(axes, row, family, places)
            axes.tick_params(axis="y", labelleft=j == 0)
            axes.set_ylabel("" if j else "AUC")
            if len(rows) > 1 and j == 0:
                ink.heading(axes, row[0].where, up=26.0)
    _name(figure, places)
    return figure


def _panel(axes: Axes, row: Sequence[DefenseCell], family: Family, places: Mapping[str, int]) -> None:
    axes.axhline(0.5, color=ink.MUTED, linewidth=0.7)
    for defense, cells in groupby(row, key=lambda cell: cell.defense):
        _defense(axes, list(cells), family, places[defense])
    known = [x for cell in row if (x := _accuracy(cell)) is not None]
    room = 0.02 + 0.1 * (max(known) - min(known))
    axes.set(xlim=(min(known) - room, max(known) + room), xlabel="accuracy")
    axes.set_ylim(ink.from_chance([one.value for cell in row for one in cell.best.values()]))
    axes.set_title(FAMILIES[family], fontsize=9)
    axes.locator_params(axis="x", nbins=5)


def _defense(axes: Axes, cells: Sequence[DefenseCell], family: Family, place: int) -> None:
    """Draw one defense from its least to its largest strength: a mark and both intervals for each."""
    colour, points = ink.attack_colour(place), list[tuple[float, float]]()
    for step, cell in enumerate(cells):
        x, found = _accuracy(cell), cell.best.get(family)
        if x is None or found is None:
            continue
        points.append((x, found.value))
        fill, size = "none" if found.compared.tied else "full", _SMALLEST + _GROWS * step
        over = 3 if cell.protected else 4
        axes.plot(x, found.value, ink.mark(place), color=colour, markersize=size, fillstyle=fill, zorder=over)
        ink.interval(axes, x, found.compared.auc.low, found.compared.auc.high, colour=colour)
        if cell.accuracy is not None:
            low, high = cell.accuracy.low, cell.accuracy.high
            ink.interval(axes, found.value, low, high, colour=colour, level=True)
        if cell.ceiling is not None:
            axes.plot(x, cell.ceiling, "_", color=ink.CEILING, markersize=10, markeredgewidth=1.4)
    if points:
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=0.8, alpha=0.5)


def _accuracy(cell: DefenseCell) -> float | None:
    return None if cell.accuracy is None else cell.accuracy.mean


def _name(figure: Figure, places: Mapping[str, int]) -> None:
    named = [(ink.attack_colour(i), ink.mark(i), name.replace("_", " ")) for name, i in places.items()]
    marks = [*named, (ink.CEILING, "_", "ceiling of its noise")]
    handles = [
        Line2D([], [], color=c, marker=m, linewidth=0, markersize=5, label=name) for c, m, name in marks
    ]
    none = Line2D([], [], color=ink.MUTED, linewidth=0.7, label="no skill")
    figure.legend(handles=[*handles, none], ncols=5, **ink.BELOW)
