"""Epsilon after each round: what was spent, and what the canaries certify, against the promise."""

import math

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from reports import numbers
from reports.figures import ink
from reports.findings import CellFindings


def spending(cell: CellFindings) -> Markup | None:
    """Return a cell's epsilon over rounds; ``None`` if nothing was spent or certified round by round."""
    spent = np.array([e if math.isfinite(e) else np.nan for e in cell.spending.spent])
    certified = np.array([np.nan if e is None else e for e in cell.spending.certified])
    if np.isnan(spent).all() and np.isnan(certified).all():
        return None
    title = f"Epsilon of {cell.name} after each round, spent and certified from below"
    with ink.drawing(title):
        figure, axes = ink.axes(220.0, 170.0, left=34.0, bottom=34.0, top=14.0, right=46.0)
        stated = None if cell.promised is None else cell.promised.stated
        if stated is not None:
            axes.axhline(stated, color=ink.CEILING, linewidth=1.2, linestyle=ink.DASHED)
            label = f"promised {numbers.epsilon(stated)}"
            axes.text(1, stated, label, color=ink.CEILING, fontsize=8, va="bottom")
        top = max([1e-9, stated or 0.0, *spent[~np.isnan(spent)], *certified[~np.isnan(certified)]])
        last = max(len(spent), len(certified))
        axes.set(xlim=(0.7, last + 0.3), ylim=(0, 1.12 * top), xlabel="round", ylabel="ε")
        _line(axes, spent, ink.TEXT, "-")
        _line(axes, certified, ink.attack_colour(2), ink.DASHED)
        _name_ends(axes, spent, certified, room=0.09 * top)
        axes.locator_params(nbins=5, integer=False, axis="y")
        axes.locator_params(nbins=6, integer=True, axis="x")
        return ink.svg(figure, title)


def _line(axes: Axes, values: np.ndarray, colour: str, dashes: ink.Dashes) -> None:
    axes.plot(np.arange(len(values)) + 1, values, color=colour, linestyle=dashes, marker="o", markersize=2.4)


def _name_ends(axes: Axes, spent: np.ndarray, certified: np.ndarray, *, room: float) -> None:
    """Write both names where their lines end, ``room`` apart at least."""
    ends = [values[~np.isnan(values)][-1:] for values in (spent, certified)]
    high, low = (float(end[0]) if len(end) else np.nan for end in ends)
    if high >= low > high - room:
        low = high - room
    elif low > high > low - room:
        high = low - room
    for text, height, values, colour in (
        ("spent", high, spent, ink.TEXT),
        ("certified", low, certified, ink.attack_colour(2)),
    ):
        if np.isfinite(height):
            axes.text(len(values) + 0.35, height, text, color=colour, fontsize=8, va="center")
