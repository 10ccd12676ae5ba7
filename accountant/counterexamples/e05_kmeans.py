"""E5: one record moves the centres of k-means by much more than 2R over the size of a cluster."""

import itertools
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from accountant import check
from accountant.counterexamples._base import Records
from accountant.counterexamples._gaussian import GaussianCounterexample, Release, shift_over_noise

_CLUSTERS = 2


def optimal_means(
    points_n: Float[np.ndarray, " n"], *, clusters: int
) -> tuple[Float[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """Return centres and sizes of the k-means clustering of numbers with the smallest cost, ascending.

    Optimal clusters of numbers are intervals and never part equal ones, so the best last cut is found for every
    prefix of the distinct values in turn. On a tie the lower cut is taken.

    Args:
        points_n: finite numbers, at least ``clusters`` different ones.
        clusters: at least 1.

    Source: Wang and Song (2011), R Journal 3(2), Section 2 (dynamic programme)

    >>> optimal_means(np.array([-1.0, 0.0, 0.0, 1.0, 1.0]), clusters=2)
    (array([-0.33333333,  1.        ]), array([3, 2]))
    """
    check.count(clusters=clusters)
    values_v, counts_v = np.unique(points_n, return_counts=True)
    if len(values_v) < clusters:
        raise ValueError(f"clusters={clusters} needs as many different points; there are {len(values_v)}.")
    sums = [np.concatenate([[0.0], np.cumsum(counts_v * values_v**power)]) for power in (0, 1, 2)]
    ends = _best_ends(sums, len(values_v), clusters)
    sizes, totals = (np.array([s[j] - s[i] for i, j in itertools.pairwise(ends)]) for s in sums[:2])
    return totals / sizes, sizes.astype(int)


def _best_ends(sums: list[Float[np.ndarray, " v"]], n: int, clusters: int) -> list[int]:
    """Return where the clusters of n values begin, and n, for the smallest sum of squares."""
    zeroth, first, second = sums

    def cost(start: int, stop: int) -> float:
        mass, total = zeroth[stop] - zeroth[start], first[stop] - first[start]
        return float(second[stop] - second[start] - total * total / mass)

    best = {(1, stop): (cost(0, stop), [0, stop]) for stop in range(1, n + 1)}
    for k in range(2, clusters + 1):
        for stop in range(k, n + 1):
            options = ((best[k - 1, cut][0] + cost(cut, stop), cut) for cut in range(k - 1, stop))
            smallest, cut = min(options)
            best[k, stop] = smallest, [*best[k - 1, cut][1], stop]
    return best[clusters, n][1]


def kmeans_releases(
    points_n: Float[np.ndarray, " n"],
    changed_n: Float[np.ndarray, " n"],
    *,
    clusters: int = _CLUSTERS,
    clip_norm: float = 1.0,
    sigma: float = 1.0,
) -> tuple[Release, Release]:
    """Return the noisy centres of D and of D', ascending, with noise ``sigma 2R / n_k`` held at the sizes of D."""
    check.positive(clip_norm=clip_norm, sigma=sigma)
    centres_k, sizes_k = optimal_means(points_n, clusters=clusters)
    moved_k, _ = optimal_means(changed_n, clusters=clusters)
    std_k = sigma * 2 * clip_norm / sizes_k
    return Release(mean=centres_k, std=std_k), Release(mean=moved_k, std=std_k)


def kmeans_factor(
    points_n: Float[np.ndarray, " n"],
    changed_m: Float[np.ndarray, " m"],
    *,
    clusters: int = _CLUSTERS,
    clip_norm: float = 1.0,
) -> float:
    """Return true mu / claimed mu of optimal k-means centres whose sensitivity is claimed to be ``2R / n_k``.

    It is the Mahalanobis distance of the ascending centres, in units of the noise that the sizes of D ask for.

    Args:
        points_n: D, finite numbers.
        changed_m: D', of the same length.
        clusters: how many centres are released, at least 1.
        clip_norm: R, > 0.

    Source: the claim is VPDR's, Eq. 5, for prototypes of clusters

    >>> d, d_prime = example_points(m=100)
    >>> round(kmeans_factor(d, d_prime), 12)
    56.46071643187
    """
    if len(points_n) != len(changed_m):
        raise ValueError(
            f"D has {len(points_n)} points and D' {len(changed_m)}; neighbours that replace one have as many."
        )
    return shift_over_noise(*kmeans_releases(points_n, changed_m, clusters=clusters, clip_norm=clip_norm))


def example_points(*, m: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return D and D' of ``3m`` points at -1, 0 and 1, of which one goes from 1 to -1; m at least 2."""
    check.count(m=m)
    if m == 1:
        raise ValueError("m=1 leaves no point at -1; use at least 2.")
    values = np.array([-1.0, 0.0, 1.0])
    return values.repeat([m - 1, m + 1, m]), values.repeat([m, m + 1, m - 1])


def _in_words(points_n: Float[np.ndarray, " n"]) -> str:
    centres_k, sizes_k = optimal_means(points_n, clusters=_CLUSTERS)
    pairs = zip(centres_k.tolist(), sizes_k.tolist(), strict=True)
    return ", ".join(f"{size} records with centre {centre:.4g}" for centre, size in pairs)


@dataclass(frozen=True, kw_only=True)
class KMeans(GaussianCounterexample):
    """Three heaps of points and two centres: one record decides which heap the middle one goes with.

    Attributes:
        m: size of a heap, at least 2; the factor grows with it, ``(m + 1) sqrt(5) / 4``.
    """

    title = "prototypes are centres of k-means on private records"
    short = "k-means on private records"
    claim = "the centre of a cluster of n_k records moves by at most 2R/n_k"
    truth = "one record moves m + 1 others to another cluster; noise is held at the sizes of D"
    breaks = ("A5",)
    way_out = "assign records to centroids that are public, or that earlier private outputs give"

    m: int = 10

    @property
    def factor(self) -> float:
        return kmeans_factor(*example_points(m=self.m))

    def data(self) -> tuple[Records, Records]:
        before, after = example_points(m=self.m)
        return {"a": before[:, None]}, {"a": after[:, None]}

    def details(self) -> tuple[str, ...]:
        before, after = (_in_words(points) for points in example_points(m=self.m))
        return (f"D  k = {_CLUSTERS} clusters: {before}", f"D' k = {_CLUSTERS} clusters: {after}")

    def releases(self) -> tuple[Release, Release]:
        before, after = example_points(m=self.m)
        return kmeans_releases(before, after, sigma=self.sigma)
