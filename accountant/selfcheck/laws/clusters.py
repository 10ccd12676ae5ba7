"""K-means on private points: how far the centres move when one point does, against the claimed noise."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from accountant.counterexamples.e05_kmeans import example_points, kmeans_factor
from accountant.selfcheck.laws.neighbours import spent
from accountant.selfcheck.numbers import number, whole
from accountant.selfcheck.privacy import NotUnderstoodError, refuse_large
from accountant.selfcheck.registry import law


@law("mahalanobis_factor", "mu_factor")
def moved_centres(*, points: object, K: int = 2, R: float = 1.0, replaced: str = "") -> float:
    """Return the shift of all centres in units of the claimed ``2 R / n_k``, taken together.

    ``points`` holds two neighbouring sets, ``D1`` and ``D2``, each as value -> how often.
    """
    if not isinstance(points, Mapping) or set(points) != {"D1", "D2"}:
        raise NotUnderstoodError("points are not two sets D1 and D2")
    return kmeans_factor(_listed(points["D1"]), _listed(points["D2"]), clusters=K, clip_norm=R)


@law("mahalanobis_factor")
def moved_centres_of_heaps(*, m: int, K: int = 2, R: float = 1.0, replaced: str = "") -> float:
    """The same for three heaps of about m points at -R, 0 and R."""
    refuse_large(m=m)
    before, after = example_points(m=m)
    return kmeans_factor(R * before, R * after, clusters=K, clip_norm=R)


@law("epsilon")
def clusters_epsilon(
    *, claimed_eps: float, delta: float, points: object, K: int = 2, R: float = 1.0, replaced: str = ""
) -> float:
    return spent(moved_centres(points=points, K=K, R=R), claimed_eps, delta)


@law("epsilon")
def heaps_epsilon(*, claimed_eps: float, delta: float, m: int, K: int = 2, R: float = 1.0) -> float:
    return spent(moved_centres_of_heaps(m=m, K=K, R=R), claimed_eps, delta)


def _listed(counted: Any) -> np.ndarray:
    if not isinstance(counted, Mapping):
        raise NotUnderstoodError("a set of points is not value -> how often")
    groups = [(whole(count), number(value)) for value, count in counted.items()]
    refuse_large(records=sum(times for times, _ in groups))
    return np.concatenate([np.full(times, value) for times, value in groups])
