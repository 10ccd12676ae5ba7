"""How the scores of members and non-members are spread, one small panel per attack."""

import math
from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.figures import ink
from reports.findings import CellFindings, Histogram

_WIDTH, _PANEL, _COLUMNS = 300, 90, 2


def histograms(cell: CellFindings, colours: Mapping[str, int]) -> Markup | None:
    """Return the score histograms of a cell's attacks; ``None`` if it has none.

    Args:
        cell: whose attacks.
        colours: place of each attack's colour.
    """
    shown = [(t.attack, t.histogram) for t in cell.taken if t.histogram]
    if not shown:
        return None
    title = f"Scores of members and non-members of {cell.name}, one panel per attack"
    columns = 1 if len(shown) <= 3 else _COLUMNS
    rows = math.ceil(len(shown) / columns)
    with ink.drawing(title):
        figure = Figure(figsize=(_WIDTH / 72, rows * _PANEL / 72))
        for place, (attack, histogram) in enumerate(shown):
            row, column = divmod(place, columns)
            box = ((column + 0.03) / columns, 1 - (row + 0.76) / rows, 0.94 / columns, 0.56 / rows)
            axes, colour = figure.add_axes(box), ink.attack_colour(colours[attack])
            _panel(axes, histogram, colour)
            axes.set_title(attack.replace("_", " "), loc="left", fontsize=8, pad=3, color=colour)
        return ink.svg(figure, title)


def _panel(axes: Axes, histogram: Histogram, colour: str) -> None:
    edges = np.array(histogram.edges)
    inside, outside = (_share(counts) for counts in (histogram.members, histogram.non_members))
    axes.stairs(inside, edges, fill=True, color=colour, alpha=0.35, linewidth=0)
    axes.stairs(inside, edges, color=colour, linewidth=1.0)
    axes.stairs(outside, edges, color=ink.TEXT, linewidth=1.0, linestyle=(0.0, (2.0, 1.0)))
    axes.set(xlim=(edges[0], edges[-1]), yticks=[], ylim=(0, None))
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(labelsize=7, length=2, pad=2)
    axes.spines["left"].set_visible(False)


def _share(counts: tuple[int, ...]) -> np.ndarray:
    """Return counts as shares, so that unequal numbers of members and non-members compare."""
    return np.array(counts, dtype=np.float64) / max(1, sum(counts))
