"""K-means on private points: how far the centres move when one point does, against the claimed noise."""

import math
from collections.abc import Mapping
from typing import Any

from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.privacy import NotUnderstoodError
from accountant.selfcheck.registry import law

_Cluster = tuple[float, int]  # centre and size


@law("mahalanobis_factor", "mu_factor")
def moved_centres(*, points: object, K: int = 2, R: float = 1.0, replaced: str = "") -> float:
    """Return the shift of all centres in units of the claimed ``2 R / n_k``, taken together.

    ``points`` holds two neighbouring sets, ``D1`` and ``D2``, each as value -> how often. Clusters are the optimal ones
    of points on a line, matched in order; the noise is scaled by the sizes of ``D1``.
    """
    if not isinstance(points, Mapping) or set(points) != {"D1", "D2"}:
        raise NotUnderstoodError("points are not two sets D1 and D2")
    before, after = (best_clusters(_counted(points[name]), K) for name in ("D1", "D2"))
    shifts = (abs(new - old) * size / (2 * R) for (old, size), (new, _) in zip(before, after, strict=True))
    return math.hypot(*shifts)


def best_clusters(counted: list[tuple[float, int]], clusters: int) -> list[_Cluster]:
    """Return the clusters of least squared distance to their centres, in order; points on a line split by cuts."""
    if not 1 <= clusters <= len(counted):
        raise ValueError(f"K={clusters} clusters of {len(counted)} distinct points; give a K from 1 to that.")
    best: dict[tuple[int, int], tuple[float, list[_Cluster]]] = {(0, 0): (0.0, [])}
    for end in range(1, len(counted) + 1):
        for parts in range(1, min(end, clusters) + 1):
            options = []
            for start in range(parts - 1, end):
                if (start, parts - 1) in best:
                    cost, centre, size = _spread(counted[start:end])
                    before, found = best[start, parts - 1]
                    options.append((before + cost, [*found, (centre, size)]))
            best[end, parts] = min(options, key=lambda option: option[0])
    return best[len(counted), clusters][1]


def _spread(counted: list[tuple[float, int]]) -> tuple[float, float, int]:
    size = sum(count for _, count in counted)
    centre = sum(value * count for value, count in counted) / size
    return sum(count * (value - centre) ** 2 for value, count in counted), centre, size


def _counted(points: Any) -> list[tuple[float, int]]:
    return sorted((number(value), whole(count)) for value, count in points.items() if whole(count))
