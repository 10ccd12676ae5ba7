"""How the scores of members and non-members are spread, one small panel per attack."""

import math
from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from reports.figures import ink
from reports.findings import CellFindings, Histogram

_WIDTH, _HEIGHT, _GAP = 300.0, 90.0, 14.0
_BARS, _FOOT = 50.0, 18.0  # height of the bars in a panel, and of what is below them


def histograms(cell: CellFindings, colours: Mapping[str, int]) -> Markup | None:
    """Return the score histograms of a cell's attacks; ``None`` if it has none.

    All panels are in one set of axes, in points: axes of their own would take most of the page's time.

    Args:
        cell: whose attacks.
        colours: place of each attack's colour.
    """
    shown = [(t.attack, t.histogram) for t in cell.taken if t.histogram]
    if not shown:
        return None
    title = f"Scores of members and non-members of {cell.name}, one panel per attack"
    columns = 1 if len(shown) <= 3 else 2
    rows = math.ceil(len(shown) / columns)
    with ink.drawing(title):
        figure, axes = ink.axes(_WIDTH, rows * _HEIGHT, left=0.0, bottom=0.0, top=0.0, right=0.0)
        axes.set(xlim=(0, _WIDTH), ylim=(0, rows * _HEIGHT))
        axes.set_axis_off()
        width = (_WIDTH - _GAP * columns) / columns
        for place, (attack, histogram) in enumerate(shown):
            row, column = divmod(place, columns)
            corner = (_GAP / 2 + column * (width + _GAP), (rows - 1 - row) * _HEIGHT + _FOOT)
            colour = ink.attack_colour(colours[attack])
            _panel(axes, histogram, corner, width, colour)
            name = attack.replace("_", " ")
            axes.text(corner[0], corner[1] + _BARS + 4, name, fontsize=8, color=colour)
        return ink.svg(figure, title)


def _panel(axes: Axes, histogram: Histogram, corner: tuple[float, float], width: float, colour: str) -> None:
    x, y = corner
    edges = np.array(histogram.edges)
    at = x + width * (edges - edges[0]) / (edges[-1] - edges[0])
    inside, outside = (_share(counts) for counts in (histogram.members, histogram.non_members))
    up = _BARS / max(inside.max(initial=0.0), outside.max(initial=0.0), 1e-9)
    axes.stairs(y + up * inside, at, baseline=y, fill=True, color=colour, alpha=0.35, linewidth=0)
    axes.stairs(y + up * inside, at, baseline=y, color=colour, linewidth=1.0)
    axes.stairs(y + up * outside, at, baseline=y, color=ink.TEXT, linewidth=1.0, linestyle=(0.0, (2.0, 1.0)))
    axes.plot([x, x + width], [y, y], color=ink.RULE, linewidth=0.8)
    for mark in MaxNLocator(4).tick_values(edges[0], edges[-1]):
        place = x + width * (mark - edges[0]) / (edges[-1] - edges[0])
        if x <= place <= x + width:
            axes.text(place, y - 10, f"{mark + 0.0:.6g}", fontsize=7, color=ink.MUTED, ha="center")


def _share(counts: tuple[int, ...]) -> np.ndarray:
    """Return counts as shares, so that unequal numbers of members and non-members compare."""
    return np.array(counts, dtype=np.float64) / max(1, sum(counts))
