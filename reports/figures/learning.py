"""Accuracy after each round, against where training alone ends."""

import numpy as np
from markupsafe import Markup

from reports.figures import ink
from reports.findings import CellFindings, Findings


def limits(findings: Findings) -> tuple[float, float]:
    """Return the range of accuracies that the figures of an audit share."""
    found = [a for cell in findings.cells for a in (*cell.cost.by_round, *_local(cell))]
    return (max(0.0, min(found) - 0.03), min(1.02, max(found) + 0.05)) if found else (0.0, 1.0)


def learning(cell: CellFindings, *, accuracy: tuple[float, float]) -> Markup | None:
    """Return a cell's accuracy over rounds; ``None`` if its runs kept no metrics.

    Args:
        cell: whose accuracy.
        accuracy: range of the vertical axis, so that cells can be compared.
    """
    found = cell.cost.by_round
    if not found:
        return None
    title = f"Accuracy of {cell.name} after each round"
    with ink.drawing(title):
        figure, axes = ink.axes(190.0, 130.0, left=32.0, bottom=30.0, top=8.0, right=10.0)
        for local in _local(cell):
            axes.axhline(local, color=ink.CEILING, linewidth=1.0, linestyle=ink.DASHED)
        axes.plot(np.arange(len(found)) + 1, found, color=ink.attack_colour(0), marker="o", markersize=2.2)
        axes.set(xlim=(0.6, len(found) + 0.4), ylim=accuracy, xlabel="round")
        axes.locator_params(axis="x", integer=True, nbins=5)
        axes.locator_params(axis="y", nbins=4)
        return ink.svg(figure, title)


def _local(cell: CellFindings) -> tuple[float, ...]:
    """Return the accuracy of local training alone, if it is known."""
    cost = cell.cost
    if cost.accuracy is None or cost.accuracy.mean is None or cost.against_local is None:
        return ()
    return (cost.accuracy.mean - cost.against_local,)
