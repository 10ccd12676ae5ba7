"""The AUC of each round alone, and of all rounds up to each: what averaging over rounds would hide."""

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from reports.figures import ink
from reports.findings import CellFindings, Findings, Taken


def limits(findings: Findings) -> tuple[float, float]:
    """Return the range of AUCs that the figures of an audit share."""
    known = [
        a for c in findings.cells for t in c.taken for a in (*t.by_round, *t.cumulative) if a is not None
    ]
    ceilings = [t.auc_ceiling for c in findings.cells for t in c.taken if t.auc_ceiling is not None]
    low, high = min([0.47, *known]), max([0.6, *known, *ceilings])
    return low - 0.01, high + 0.02


def rounds(cell: CellFindings, colours: Mapping[str, int], *, auc: tuple[float, float]) -> Markup | None:
    """Return a cell's AUC over rounds; ``None`` if no attack tells rounds apart.

    Args:
        cell: whose attacks.
        colours: place of each attack's colour.
        auc: range of the vertical axis, so that cells can be compared.
    """
    shown = [t for t in cell.taken if t.by_round or t.cumulative]
    if not shown:
        return None
    title = f"AUC on {cell.name} of each round alone, and of all rounds so far"
    with ink.drawing(title):
        figure, axes = ink.axes(300.0, 270.0, left=38.0, bottom=36.0)
        axes.axhline(0.5, color=ink.MUTED, linewidth=0.7)
        last = max(len(t.by_round or t.cumulative) for t in shown)
        ceiling = max((t.auc_ceiling for t in shown if t.auc_ceiling is not None), default=None)
        if ceiling is not None:
            axes.axhline(ceiling, color=ink.CEILING, linewidth=1.2, linestyle=ink.DASHED)
            axes.text(1, ceiling, "ceiling", color=ink.CEILING, fontsize=8, va="bottom")
        for found in shown:
            _one(axes, found, colours[found.attack])
        axes.set(xlim=(0.7, last + 0.3), ylim=auc, xlabel="round", ylabel="AUC")
        axes.locator_params(axis="x", integer=True, nbins=6)
        return ink.svg(figure, title)


def _one(axes: Axes, found: Taken, place: int) -> None:
    colour = ink.attack_colour(place)
    alone, summed = (_numbers(values) for values in (found.by_round, found.cumulative))
    axes.plot(np.arange(len(alone)) + 1, alone, "o", color=colour, markersize=2.6, alpha=0.75, linewidth=0)
    known = np.flatnonzero(np.isfinite(summed))
    axes.plot(known + 1, summed[known], color=colour, linestyle=ink.dashes(place))


def _numbers(values: tuple[float | None, ...]) -> np.ndarray:
    return np.array([np.nan if value is None else value for value in values])
