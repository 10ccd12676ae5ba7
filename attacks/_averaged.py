"""All releases of one client's class, or of one cluster, as one, weighted by the noise that a server knows of."""

from dataclasses import dataclass, replace
from functools import cached_property, singledispatch

import numpy as np
from jaxtyping import Float64

from accountant.events import ClipSet
from attacks._base import NotApplicableError
from attacks._known_noise import Groups, count, encoder_is_public, groups_seen, prototypes
from privkit.clip import brought_near, ellipsoid_factors
from privkit.release import Payload, Release, SumsAndCounts
from privkit.transcript import ServerView

Rows = list[tuple[Release, int]]
"""What one message says of a class: a row of it, or several where records were clustered."""


@dataclass(frozen=True, eq=False)
class Averaged:
    """All releases of one client's class, or of one cluster, as one: the precision-weighted mean over rounds.

    Weights are by coordinate. It is a sufficient statistic when the mean underneath is the same in every round, that
    is, when the encoder and the clip are: the log likelihood ratios of the rounds then add up to that of this mean.

    Attributes:
        vector: shape [d].
        variance: of the noise left on each coordinate, shape [d]; 0 when there was none.
        count: records behind it; where that is noisy, as the server estimates it, at least 1.
        rounds: the groups of the rounds it is made of.
        weight_Td: of each of them on each coordinate; the weights of a coordinate add up to 1.
    """

    vector: Float64[np.ndarray, " d"]
    variance: Float64[np.ndarray, " d"]
    count: float
    rounds: tuple[Groups, ...]
    weight_Td: Float64[np.ndarray, "T d"]

    @property
    def noise_of_sum_d(self) -> Float64[np.ndarray, " d"]:
        """Return the variance of the noise on a sum of records, averaged as the rounds are: alike for all classes."""
        return _weights(np.array([groups.std_d**2 for groups in self.rounds]))[1]

    @property
    def isotropic(self) -> bool:
        """Return whether the noise left is alike on all coordinates."""
        return bool((self.variance == self.variance[0]).all())

    def clip(self, vectors_Nd: np.ndarray) -> Float64[np.ndarray, "N d"]:
        """Return what each record puts into the average, times the count: its clipped versions, averaged.

        Clipping scales each group of coordinates, or all of them alike, so the average over rounds scales each
        coordinate.
        """
        groups = range(max(len(g.norms) for g in self.rounds))
        vectors = brought_near(vectors_Nd, norm=max(max(g.norms) for g in self.rounds))
        factor_Nd, together_T = np.zeros(vectors.shape), np.array([g.clip in _TOGETHER for g in self.rounds])
        mine_GTd = np.array([[g.index == group for g in self.rounds] for group in groups])
        norms_GT = np.array([[_norm(g, group) for g in self.rounds] for group in groups])
        lengths_GNT = np.sqrt(vectors**2 @ mine_GTd.transpose(0, 2, 1))
        norms_G1T = norms_GT[:, None]
        scale_GNT = 1 / np.maximum(lengths_GNT / norms_G1T, 1.0)
        if together_T.any():
            scale_GNT = np.where(together_T, ellipsoid_factors(lengths_GNT, norms_G1T), scale_GNT)
        for group in groups:
            factor_Nd += scale_GNT[group] @ (self.weight_Td * mine_GTd[group])
        return vectors * factor_Nd


_TOGETHER = (ClipSet.ELLIPSOID, ClipSet.GLOBAL)
"""Sets in which what a record is in one group decides how much of the others is left."""


def _norm(groups: Groups, group: int) -> float:
    return groups.norms[group] if group < len(groups.norms) else np.inf


class Channel:
    """What one view tells about the noise of its releases; every release is looked at once."""

    def __init__(self, view: ServerView) -> None:
        """Take a view whose releases hold prototypes; another payload is refused when it is asked for."""
        self.view = view
        self._groups: dict[Release, Groups] = {}

    @cached_property
    def drifts(self) -> bool:
        """Return whether a class mean may move between rounds because a private encoder is trained."""
        return not all(encoder_is_public(release) for release in self.view.releases)

    def groups(self, release: Release) -> Groups:
        """Return the groups of a release, as the server infers them from what was sent."""
        if release not in self._groups:
            self._groups[release] = groups_seen(release)
        return self._groups[release]

    def averaged(self, *, client: int, label: int, drifts: bool | None = None) -> Averaged:
        """Return one client's class, averaged over the rounds it was released in.

        Several prototypes of the class in one message are first made its mean again, weighted by their counts.

        Args:
            client: whose prototypes.
            label: of which class.
            drifts: whether the mean itself may move from round to round; by default what the encoders say.
                The first round, whose weights are public, then counts as it is, and a later one is
                trusted less the further it has moved beyond what its noise explains.
        """
        return self._average(self._rounds(client, label), drifts)

    def clusters(self, *, client: int, label: int) -> tuple[tuple[Averaged, ...], ...]:
        """Return the clusters of one client's class, each as one average where they can be followed through rounds.

        They can where the same records are clustered anew: encoder and clip stay, and every message has as many of the
        same sizes in the same order. Otherwise each message is a set of clusters of its own; the further the mean of
        the class has moved, the noisier it counts, and exact messages that it has not moved from count alone.

        Returns:
            sets of clusters; the clusters of a set hold all records of the class, and the noise on them is the same but
            for its size. One prototype per message, the usual case, is one set of one.
        """
        rounds = self._rounds(client, label)
        if {len(rows) for rows in rounds} == {1}:
            return ((self._average(rounds),),)
        if self._alike(rounds):
            return (tuple(self._average([[row] for row in chain]) for chain in zip(*rounds, strict=True)),)
        vectors_Td, variance_Td, _ = self._pooled(rounds)
        moved_T, noise_T = self._moved(vectors_Td, variance_Td), variance_Td.mean(1)
        still_T = (noise_T == 0) & (moved_T == 0)
        kept_T = still_T if still_T.any() else noise_T > 0
        factor_T = 1 + np.divide(moved_T, noise_T, out=np.zeros_like(moved_T), where=noise_T > 0)
        return tuple(
            tuple(self._cluster(row, float(factor_T[t])) for row in rounds[t]) for t in np.flatnonzero(kept_T)
        )

    def _rounds(self, client: int, label: int) -> list[Rows]:
        """Return what each message of a client says of a class, in the order of rounds."""
        found: dict[Release, Rows] = {}
        for release, row in self.view.prototypes(client=client, label=label):
            found.setdefault(release, []).append((release, row))
        if not found:
            raise NotApplicableError(f"client {client} released no prototype of class {label}")
        return list(found.values())

    def _alike(self, rounds: list[Rows]) -> bool:
        """Return whether all messages are of the same clusters, as far as a server can tell."""
        first, *others = [self.groups(rows[0][0]) for rows in rounds]
        same_clip = all(g.norms == first.norms and np.array_equal(g.index, first.index) for g in others)
        return not self.drifts and same_clip and len({_sizes(rows) for rows in rounds}) == 1

    def _average(self, rounds: list[Rows], drifts: bool | None = None) -> Averaged:
        vectors_Td, variance_Td, counts_T = self._pooled(rounds)
        variance_Td = variance_Td + self._moved(vectors_Td, variance_Td, drifts)[:, None]
        weight_Td, left_d = _weights(variance_Td)
        return Averaged(
            vector=(weight_Td * vectors_Td).sum(0),
            variance=left_d,
            count=float(counts_T[-1]),
            rounds=tuple(self.groups(rows[0][0]) for rows in rounds),
            weight_Td=weight_Td,
        )

    def _cluster(self, row: tuple[Release, int], factor: float) -> Averaged:
        """Return one cluster of one message, with so many times the variance of its noise."""
        alone = self._average([[row]])
        return replace(alone, variance=factor * alone.variance)

    def _pooled(
        self, rounds: list[Rows]
    ) -> tuple[Float64[np.ndarray, "T d"], Float64[np.ndarray, "T d"], Float64[np.ndarray, " T"]]:
        """Return the mean of the rows of each message, the variance of the noise on it, and the records behind it."""
        vectors_Td, counts_T = _means(rounds[0][0][0].payload, rounds)
        std_Td = np.array([self.groups(rows[0][0]).std_d for rows in rounds]) / counts_T[:, None]
        return vectors_Td, std_Td**2 * np.array([len(rows) for rows in rounds])[:, None], counts_T

    def _moved(
        self,
        vectors_Td: Float64[np.ndarray, "T d"],
        variance_Td: Float64[np.ndarray, "T d"],
        drifts: bool | None = None,
    ) -> Float64[np.ndarray, " T"]:
        """Return how far each mean has moved from the first beyond what noise explains, squared, per coordinate."""
        if not (self.drifts if drifts is None else drifts):
            return np.zeros(len(vectors_Td))
        moved_T = ((vectors_Td - vectors_Td[0]) ** 2).mean(1)
        expected_T = variance_Td.mean(1) + variance_Td[0].mean()
        return np.maximum(0.0, moved_T - expected_T)


def _sizes(rows: Rows) -> tuple[int, ...]:
    """Return the records behind each of several rows."""
    return tuple(count(release, row) for release, row in rows)


@singledispatch
def _means(
    payload: Payload, rounds: list[Rows]
) -> tuple[Float64[np.ndarray, "T d"], Float64[np.ndarray, " T"]]:
    """Return the mean vector of the rows of each message, and the records behind it."""
    found = [_mean(rows) for rows in rounds]
    return np.array([vector for vector, _ in found]), np.array([records for _, records in found])


def _mean(rows: Rows) -> tuple[Float64[np.ndarray, " d"], float]:
    vectors_Pd = np.array([prototypes(r).vectors[row] for r, row in rows], dtype=np.float64)
    counts_P = np.array([count(release, row) for release, row in rows], dtype=np.float64)
    if len(rows) == 1:
        return vectors_Pd[0], float(counts_P[0])
    return counts_P @ vectors_Pd / counts_P.sum(), float(counts_P.sum())


@_means.register
def _means_of_sums(
    payload: SumsAndCounts, rounds: list[Rows]
) -> tuple[Float64[np.ndarray, "T d"], Float64[np.ndarray, " T"]]:
    # the number of records is the same in all rounds: their mean has less noise than any of them
    found = [[(_sums(release), row) for release, row in rows] for rows in rounds]
    totals = [float(sum(sent.totals[row] for sent, row in rows)) for rows in found]
    count = max(1.0, float(np.mean(totals)))
    sums_Td = np.array(
        [np.sum([s.vectors[row] for s, row in rows], axis=0, dtype=np.float64) for rows in found]
    )
    return sums_Td / count, np.full(len(rounds), count)


def _sums(release: Release) -> SumsAndCounts:
    if not isinstance(release.payload, SumsAndCounts):
        raise NotApplicableError(f"client {release.client} released sums in one round and no sums in another")
    return release.payload


def _weights(
    variance_Td: Float64[np.ndarray, "T d"],
) -> tuple[Float64[np.ndarray, "T d"], Float64[np.ndarray, " d"]]:
    """Return the weight of each round on each coordinate, and the variance left; exact rounds count alone."""
    exact_Td = variance_Td == 0
    precision_Td = np.divide(1.0, variance_Td, out=np.zeros_like(variance_Td), where=~exact_Td)
    raw_Td = np.where(exact_Td.any(0), exact_Td.astype(float), precision_Td)
    total_d = raw_Td.sum(0)
    return raw_Td / total_d, np.where(exact_Td.any(0), 0.0, 1.0 / total_d)


def averaged(view: ServerView, *, client: int, label: int, drifts: bool | None = None) -> Averaged:
    """Return one client's class, averaged over rounds; see :meth:`Channel.averaged`."""
    return Channel(view).averaged(client=client, label=label, drifts=drifts)
