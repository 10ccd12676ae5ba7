"""E6: one record changes how many clusters FINCH finds, and so how many prototypes are released."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from accountant.counterexamples._base import Counterexample, Estimate, Fact, Records
from accountant.counterexamples._estimates import delta_of_event
from accountant.counterexamples._gaussian import class_means

_DEGREES = (0.0, 1.0, 2.0, 50.0, 90.0)
_MOVED = (0.0, 25.0, 2.0, 50.0, 90.0)


def first_partition(points_nd: Float[np.ndarray, "n d"]) -> Int[np.ndarray, " n"]:
    """Return each point's cluster in the first partition of FINCH, numbered from 0.

    Clusters are the connected parts of the graph that joins each point to the one at the smallest cosine distance.

    Args:
        points_nd: at least two, none of norm 0. Of equally near neighbours the first one counts.

    Source: Sarfraz, Sharma and Stiefelhagen (2019), Eq. 1, https://arxiv.org/abs/1902.11266

    >>> first_partition(circle((0.0, 1.0, 2.0, 50.0, 90.0)))
    array([0, 0, 0, 1, 1])
    """
    if len(points_nd) < 2:
        raise ValueError(f"{len(points_nd)} point has no neighbour; give at least 2.")
    norms_n1 = np.linalg.norm(points_nd, axis=1, keepdims=True)
    if not (norms_n1 > 0).all():
        raise ValueError("a point has norm 0 or is NaN, so it has no direction; leave it out.")
    unit_nd = points_nd / norms_n1
    cosine_nn = unit_nd @ unit_nd.T
    np.fill_diagonal(cosine_nn, -np.inf)
    here, nearest = np.arange(len(points_nd)), cosine_nn.argmax(1)
    cluster_n = here.copy()
    for _ in here:  # labels sink along edges; a part is at most n steps long
        np.minimum.at(cluster_n, nearest, cluster_n[here])
        cluster_n = np.minimum(cluster_n, cluster_n[nearest])
    return np.unique(cluster_n, return_inverse=True)[1]


def circle(degrees: tuple[float, ...]) -> Float[np.ndarray, "n 2"]:
    """Return points on the unit circle."""
    angles_n = np.deg2rad(degrees)
    return np.stack([np.cos(angles_n), np.sin(angles_n)], axis=1)


@dataclass(frozen=True, kw_only=True)
class Finch(Counterexample):
    """Five records of a class on the unit circle, one of which moves by 24 degrees and joins two clusters."""

    title = "prototypes are FINCH clusters of private records"
    short = "FINCH on private records"
    claim = "the mean of a cluster of n_k records moves by at most 2R/n_k"
    truth = "the number of prototypes changes from 2 to 1, which no noise on them hides"
    breaks = ("A5",)
    way_out = "fix the clusters by public centroids, so that a record decides for itself only"
    draws = 20_000

    def data(self) -> tuple[Records, Records]:
        return {"a": circle(_DEGREES)}, {"a": circle(_MOVED)}

    def facts(self) -> tuple[Fact, ...]:
        on_d, on_d_prime = (len(_clusters(records["a"])) for records in self.data())
        return (
            Fact(name=self.delta_name, value=1.0, claimed=self.delta),
            Fact(name="prototypes of D", value=float(on_d)),
            Fact(name="prototypes of D'", value=float(on_d_prime), claimed=float(on_d)),
        )

    def _simulate(self, samples: int, rng: np.random.Generator) -> tuple[Estimate, ...]:
        clusters = (_clusters(records["a"]) for records in self.data())
        sizes = [class_means(found, sigma=self.sigma).draw(samples, rng).shape[1] // 2 for found in clusters]
        two_of_d, two_of_d_prime = (np.full(samples, size == 2) for size in sizes)
        return (delta_of_event(self.delta_name, two_of_d, two_of_d_prime, epsilon=self.epsilon),)


def _clusters(points_nd: Float[np.ndarray, "n d"]) -> Records:
    partition_n = first_partition(points_nd)
    return {str(k): points_nd[partition_n == k] for k in range(partition_n.max() + 1)}
