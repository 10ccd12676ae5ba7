"""How much of the coordinates that truly separate the classes a defense chose, beside what a coin would have."""

import numpy as np

from attacks.statistics.seeds import over_seeds
from privkit.audit.cells import Cell
from privkit.truth import Hidden
from reports.findings import Overlap


def overlap(cell: Cell) -> Overlap | None:
    """Return how much of the truth the informative group held; ``None`` where no group was chosen, or none kept."""
    runs = [[h for h in run.truth().hidden.values() if h.overlap is not None] for run in cell.runs]
    if not all(runs):
        return None
    return Overlap(
        share=over_seeds([float(np.mean([_share(h) for h in hidden])) for hidden in runs]),
        chance=float(np.mean([(h.groups == 0).mean() for hidden in runs for h in hidden])),
    )


def _share(hidden: Hidden) -> float:
    assert hidden.overlap is not None
    return float(hidden.overlap[0])
