"""What the figures of a report draw, as few numbers as they can show."""

import numpy as np

from accountant.tradeoff import AbstractCurve
from attacks.statistics.roc import roc
from reports.findings import Histogram, Line

_POINTS = 80
_BINS = 25


def roc_line(members: np.ndarray, non_members: np.ndarray) -> Line | None:
    """Return an attack's ROC; of many points, those that are evenly spread over a logarithmic axis."""
    if not len(members) or not len(non_members):
        return None
    curve = roc(members, non_members)
    fp_K, tp_K = curve.false_positives_K, curve.true_positives_K
    wanted = np.geomspace(1, len(non_members), _POINTS).round()
    # at each number of false positives the highest point: the last one of that number
    last = np.searchsorted(fp_K, np.unique([0, *wanted]), side="right") - 1
    keep = np.unique(np.append(last, len(fp_K) - 1))
    return Line(
        fpr=tuple((fp_K[keep] / len(non_members)).tolist()), tpr=tuple((tp_K[keep] / len(members)).tolist())
    )


def ceiling_line(curve: AbstractCurve | None, *, least: float) -> Line | None:
    """Return the proof's limit from a false-positive rate of ``least`` up."""
    if curve is None:
        return None
    fpr = np.geomspace(least, 1.0, _POINTS // 2)
    fpr[-1] = 1.0
    return Line(fpr=tuple(fpr.tolist()), tpr=tuple(curve.tpr(rate) for rate in fpr.tolist()))


def histogram(members: np.ndarray, non_members: np.ndarray) -> Histogram | None:
    """Return how scores are spread; the outermost bins hold what lies beyond the 1st and 99th percentile."""
    if not len(members) or not len(non_members):
        return None
    both = np.concatenate([members, non_members])
    low, high = np.quantile(both, [0.01, 0.99])
    if not low < high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    counts = [np.histogram(np.clip(part, low, high), edges)[0] for part in (members, non_members)]
    return Histogram(
        edges=tuple(edges.tolist()),
        members=tuple(counts[0].tolist()),
        non_members=tuple(counts[1].tolist()),
    )
