"""What every cell costs in accuracy: seeds as dots, their mean, and training alone."""

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from reports.figures import ink
from reports.findings import CellFindings

_ROW = 24


def accuracy(cells: tuple[CellFindings, ...]) -> Markup | None:
    """Return the accuracy of every cell; ``None`` if no run kept metrics."""
    shown = [cell for cell in cells if cell.cost.accuracy and cell.cost.accuracy.mean is not None]
    if not shown:
        return None
    title = "Accuracy of every cell: seeds as dots, their mean as a bar, local training alone as a diamond"
    longest = max(len(cell.name) for cell in shown)
    with ink.drawing(title):
        left = min(200.0, 12.0 + 5 * longest)
        figure, axes = ink.axes(
            left + 270.0, _ROW * len(shown) + 40.0, left=left, bottom=34.0, top=6.0, right=14.0
        )
        for row, cell in enumerate(shown):
            _row(axes, row, cell)
        axes.set(ylim=(len(shown) - 0.5, -0.5), xlabel="accuracy in the last round")
        axes.set_yticks(range(len(shown)), [cell.name for cell in shown])
        axes.tick_params(axis="y", length=0, labelcolor=ink.TEXT)
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.06)
        return ink.svg(figure, title)


def _row(axes: Axes, row: int, cell: CellFindings) -> None:
    mean = cell.cost.accuracy.mean if cell.cost.accuracy else None
    assert mean is not None
    axes.axhline(row, color=ink.RULE, linewidth=0.6, zorder=0)
    seeds = np.array(list(cell.cost.per_seed.values()))
    axes.plot(seeds, np.full(len(seeds), row), "o", color=ink.attack_colour(0), markersize=4.5, alpha=0.55)
    axes.plot([mean, mean], [row - 0.3, row + 0.3], color=ink.TEXT, linewidth=1.8)
    if cell.cost.against_local is not None:
        local = mean - cell.cost.against_local
        axes.plot(local, row, "D", color=ink.CEILING, markersize=4.5, fillstyle="none")
