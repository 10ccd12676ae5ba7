"""The ROC of every attack on a cell, where it matters: at small false-positive rates, against the proof's ceiling."""

import math
from collections.abc import Mapping

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from reports.figures import ink
from reports.figures.no_skill_band import no_skill_band
from reports.findings import CellFindings, Findings, Line


def floor(findings: Findings) -> float:
    """Return the smallest rate that any attack of an audit could show, 1/N; all its ROCs start there."""
    counts = [t.auc.n_non_members for c in findings.cells for t in c.taken if t.auc and t.auc.n_non_members]
    return 1 / max(counts, default=100)


def roc(cell: CellFindings, colours: Mapping[str, int], *, start: float) -> Markup | None:
    """Return a cell's ROCs on logarithmic axes, and once more small on linear ones; ``None`` if it has none.

    Args:
        cell: whose attacks.
        colours: place of each attack's colour.
        start: where both axes begin, so that cells can be compared.
    """
    if not any(t.roc for t in cell.taken):
        return None
    title = f"ROC of every attack on {cell.name}, on logarithmic axes"
    with ink.drawing(title):
        figure, axes = ink.axes(300.0, 270.0, left=42.0, bottom=36.0)
        _no_skill(axes, cell)
        if cell.ceiling:
            axes.plot(*_from(cell.ceiling, start), color=ink.CEILING, linewidth=1.2, linestyle=ink.DASHED)
            _name_ceiling(axes, cell.ceiling, start)
        inset = axes.inset_axes((0.63, 0.07, 0.35, 0.35))
        _linear(inset, cell.ceiling)
        for found in cell.taken:
            if found.roc and found.auc:
                colour, dashes = ink.attack_colour(colours[found.attack]), ink.dashes(colours[found.attack])
                shown = _from(found.roc, max(start, 1 / found.auc.n_non_members))
                axes.plot(*shown, color=colour, linestyle=dashes)
                inset.plot(found.roc.fpr, found.roc.tpr, color=colour, linestyle=dashes, linewidth=1.0)
        axes.set(xscale="log", yscale="log", xlim=(start, 1), ylim=(start, 1.08))
        axes.set(xlabel="false-positive rate", ylabel="true-positive rate")
        _powers_of_ten(axes, start)
        return ink.svg(figure, title)


def _no_skill(axes: Axes, cell: CellFindings) -> None:
    sizes = {(t.auc.n_members, t.auc.n_non_members) for t in cell.taken if t.roc and t.auc}
    for size in sorted(sizes):
        fpr, low, high = zip(*no_skill_band(*size), strict=True)
        axes.fill_between(fpr, np.maximum(low, 1e-9), high, color=ink.BAND, alpha=0.5, linewidth=0)
    axes.plot([1e-9, 1], [1e-9, 1], color=ink.MUTED, linewidth=0.7)


def _name_ceiling(axes: Axes, ceiling: Line, start: float) -> None:
    fpr, tpr = _from(ceiling, start)
    at = int(np.searchsorted(fpr, start**0.75))
    place, colour = (float(fpr[at]), float(tpr[at])), ink.CEILING
    axes.annotate(
        "ceiling", place, xytext=(-2, 4), textcoords="offset points", color=colour, fontsize=8, ha="right"
    )


def _powers_of_ten(axes: Axes, start: float) -> None:
    """Mark powers of ten only; matplotlib's own marks take longer to set than all else on the page."""
    powers = range(math.ceil(math.log10(start)), 1)
    names = ["1" if power == 0 else f"10⁻{'⁰¹²³⁴⁵⁶⁷⁸⁹'[-power]}" for power in powers]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        axis.set_ticks([10.0**power for power in powers], names)


def _linear(inset: Axes, ceiling: Line | None) -> None:
    inset.plot([0, 1], [0, 1], color=ink.MUTED, linewidth=0.6)
    if ceiling:
        inset.plot(ceiling.fpr, ceiling.tpr, color=ink.CEILING, linewidth=0.9, linestyle=ink.DASHED)
    inset.set(xlim=(0, 1), ylim=(0, 1.02), xticks=[], yticks=[])
    inset.patch.set_alpha(0)
    inset.set_title("linear", fontsize=7, color=ink.MUTED, pad=2)


def _from(line: Line, start: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a curve from a rate on: what it reaches there, then its points beyond."""
    fpr, tpr = np.array(line.fpr), np.array(line.tpr)
    before = fpr <= start
    first = tpr[before].max(initial=0.0)
    x, y = np.concatenate([[start], fpr[~before]]), np.concatenate([[first], tpr[~before]])
    return x, np.where(y > 0, y, np.nan)
