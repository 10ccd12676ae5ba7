"""Accuracy against the AUC of the strongest attack, a mark per audited cell and a line along those that none beats."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from reports.figures import ink
from reports.frontier_cells import FrontierCell, frontier, point

_WIDTH, _PANEL, _FOOT, _TOP, _KEY = 480.0, 220.0, 34.0, 24.0, 16.0
_COLUMNS = 3


def draw(cells: Sequence[FrontierCell]) -> Figure | None:
    """Return the figure, a panel per data set; ``None`` if no cell has both numbers."""
    known = [one for one in cells if point(one) is not None]
    if not known:
        return None
    names = list(dict.fromkeys(one.data for one in known))
    places = {system: i for i, system in enumerate(dict.fromkeys(one.system for one in known))}
    key = _KEY * (2 + len(places) // _COLUMNS)
    each = _FOOT + _PANEL + _TOP
    height = each * len(names) + key
    figure = Figure(figsize=(_WIDTH / 72, height / 72))
    for i, name in enumerate(names):
        corner = (44.0 / _WIDTH, (height - each * (i + 1) + _FOOT) / height)
        axes = figure.add_axes((*corner, 1.0 - 56.0 / _WIDTH, _PANEL / height))
        _panel(axes, [one for one in known if one.data == name], places)
        axes.set_title(name, fontsize=9)
    _name(figure, places)
    return figure


def _panel(axes: Axes, cells: Sequence[FrontierCell], places: dict[str, int]) -> None:
    axes.axhline(0.5, color=ink.MUTED, linewidth=0.7)
    for one in cells:
        _mark(axes, one, places[one.system])
    along = sorted((x, y) for one in frontier(cells) for x, y in [_point(one)])
    axes.plot(*zip(*along, strict=True), color=ink.MUTED, linewidth=1.0, zorder=1)
    axes.set_ylim(ink.from_chance([_point(one)[1] for one in cells]))
    axes.set(xlabel="accuracy", ylabel="AUC of the strongest attack")


def _mark(axes: Axes, one: FrontierCell, place: int) -> None:
    (x, y), colour = _point(one), ink.attack_colour(place)
    protected = one.cell.defense.get("name", "none") != "none"
    axes.plot(x, y, ink.mark(place), color=colour, markersize=5, fillstyle="full" if protected else "none")
    auc = None if one.strongest is None else one.strongest.auc
    if auc is not None:
        ink.interval(axes, x, auc.low, auc.high, colour=colour)
    if one.accuracy is not None:
        ink.interval(axes, y, one.accuracy.low, one.accuracy.high, colour=colour, level=True)
    if one.ceiling is not None:
        axes.plot(x, one.ceiling, "_", color=ink.CEILING, markersize=10, markeredgewidth=1.4)


def _point(one: FrontierCell) -> tuple[float, float]:
    found = point(one)
    assert found is not None
    return found


def _name(figure: Figure, places: dict[str, int]) -> None:
    marks = [(ink.attack_colour(i), ink.mark(i), name) for name, i in places.items()]
    handles = [Line2D([], [], color=c, marker=m, linewidth=0, markersize=5, label=n) for c, m, n in marks]
    handles += [
        Line2D(
            [], [], color=ink.MUTED, marker="o", fillstyle="none", linewidth=0, label="hollow: no defense"
        ),
        Line2D([], [], color=ink.CEILING, marker="_", linewidth=0, label="ceiling of its proof"),
        Line2D([], [], color=ink.MUTED, linewidth=1.0, label="unbeaten"),
    ]
    figure.legend(handles=handles, ncols=_COLUMNS, **ink.BELOW)
