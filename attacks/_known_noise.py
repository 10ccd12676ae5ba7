"""What a server knows of how each release was made: its clip, and the size of the noise on every number."""

from dataclasses import dataclass, replace
from functools import cached_property, singledispatch

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import Contract, DependsOn, Relation
from accountant.events import ClipSet, Gaussian, GroupGaussian, Leaf, NonPrivate, leaves
from accountant.relations import reach
from attacks._base import NotApplicableError
from privkit.clip import brought_near, ellipsoid_factors
from privkit.release import ByClass, Head, Payload, Prototypes, Release, SumsAndCounts, Update
from privkit.transcript import ServerView

Rows = list[tuple[Release, int]]
"""What one message says of a class: a row of it, or several where records were clustered."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of coordinates, each with a clip and a noise of its own; one group when there is no difference.

    Attributes:
        index: group of each coordinate, shape [d].
        norms: radius (or semi-axis) of each group, infinite where nothing was clipped.
        stds: standard deviation of the noise on a sum of records, per group; 0 where there was none.
        clip: the set that records were clipped into.
    """

    index: Int64[np.ndarray, " d"]
    norms: tuple[float, ...]
    stds: tuple[float, ...]
    clip: ClipSet = ClipSet.GROUPWISE

    @property
    def std_d(self) -> Float64[np.ndarray, " d"]:
        """Return the standard deviation of the noise on each coordinate of a sum of records."""
        return np.array(self.stds)[self.index]


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


def groups_seen(release: Release) -> Groups:
    """Return the groups of a release as a server infers them: which coordinates is never sent, how many is public."""
    sent = prototypes(release)
    leaf = noisy_leaf(release)
    if isinstance(leaf, GroupGaussian) and len(leaf.sizes) > 1:
        return groups_of(release, _by_energy(sent, leaf))
    return groups_of(release, np.zeros(sent.vectors.shape[1], dtype=np.int64))


def groups_of(release: Release, index_d: Int64[np.ndarray, " d"]) -> Groups:
    """Return the groups of a release whose coordinates' groups are known."""
    leaf = noisy_leaf(release)
    match leaf:
        case None:
            return Groups(index_d, (clip_norm(release),), (0.0,))
        case Gaussian(noise_multiplier=sigma, contract=contract) if contract.clip_norm is not None:
            moved = _reach(contract) * contract.clip_norm
            return Groups(index_d, (contract.clip_norm,), (sigma * moved,))
        case GroupGaussian(noise_multipliers=sigmas, clip_norms=norms, contract=contract) if norms:
            radii = _reach(contract)
            stds = tuple(s * radii * norm for s, norm in zip(sigmas, norms, strict=True))
            return Groups(index_d, norms, stds, leaf.clip)
        case _:
            raise NotApplicableError(
                f"the noise of {type(leaf).__name__} is not known per coordinate; declare its clip norms"
            )


def noisy_leaf(release: Release) -> Leaf | None:
    """Return the one part of a release's event that put noise on the vectors, or ``None`` if none did."""
    found = [leaf for leaf, _ in leaves(release.event) if isinstance(leaf, Gaussian | GroupGaussian)]
    if len(found) > 1:
        raise NotApplicableError(f"client {release.client} put noise on its prototypes {len(found)} times")
    if not found and not any(isinstance(leaf, NonPrivate) for leaf, _ in leaves(release.event)):
        raise NotApplicableError(
            f"the noise of {type(release.event).__name__} is not known per coordinate; "
            "declare the clip norm in the event's contract"
        )
    return found[0] if found else None


def _by_energy(sent: Prototypes, leaf: GroupGaussian) -> Int64[np.ndarray, " d"]:
    """Return each coordinate's group, guessed from how far the prototypes are spread on it.

    Times its count, each prototype's noise has the same size, so the spread over prototypes ranks the
    coordinates by their noise; how many belong to each group is public. A sum of n records of length R adds
    about ``(n R)^2 / d`` to it, so prototypes of many records count less.
    """
    if sent.counts is None:
        raise NotApplicableError("the record counts behind the prototypes were not released")
    norms_G = np.array(leaf.clip_norms or np.ones(len(leaf.sizes)))
    noise_G = 2.0 * norms_G * leaf.noise_multipliers
    sums_Pd = sent.vectors.astype(np.float64) * sent.counts[:, None]
    signal_P = sent.counts**2 * (norms_G**2).sum() / sums_Pd.shape[1]
    weight_P = (signal_P + (noise_G**2).mean()) ** -2.0
    spread_d = weight_P @ sums_Pd**2
    index_d = np.empty(len(spread_d), dtype=np.int64)
    order, start = np.argsort(spread_d, kind="stable"), 0
    for group in np.argsort(noise_G, kind="stable").tolist():
        index_d[order[start : start + leaf.sizes[group]]] = group
        start += leaf.sizes[group]
    return index_d


def _reach(contract: Contract) -> float:
    """Return how many clip norms one record can move a sum of vectors by."""
    if contract.query is not None:
        try:
            return reach(contract.query, contract.relation)
        except ValueError as reason:
            raise NotApplicableError(str(reason)) from None
    match contract.relation:
        case Relation.REPLACE_SAME_LABEL | Relation.REPLACE_ANY_LABEL:
            return 2.0
        case Relation.ZERO_OUT:
            return 1.0
        case _:
            raise NotApplicableError(f"the noise on a mean is not known under {contract.relation.value!r}")


def prototypes(release: Release) -> Prototypes:
    """Return the prototypes that a release's payload holds, or that can be made of it."""
    if not isinstance(release.payload, ByClass):
        raise NotApplicableError(f"client {release.client} sent {_words(release.payload)}, not prototypes")
    return release.payload.prototypes()


def sent_instead(view: ServerView) -> str:
    """Return in a sentence what clients sent where they sent no prototypes at all; nothing where they did."""
    if not view.releases or any(isinstance(release.payload, ByClass) for release in view.releases):
        return ""
    return f"clients sent {_words(view.releases[0].payload)}, not prototypes"


def refuse_other_payloads(view: ServerView) -> None:
    """Raise if clients sent something, but no prototypes."""
    if reason := sent_instead(view):
        raise NotApplicableError(reason)


_UPDATES = {"weights": "trained weights", "gradient": "gradients", "delta": "changes of their weights"}


def _words(payload: Payload) -> str:
    """Return a kind of payload in words."""
    match payload:
        case Update(means=means):
            return _UPDATES[means]
        case Head():
            return "classifier heads"
        case _:
            return payload.kind


def clip_norm(release: Release) -> float:
    """Return the clip norm that a release's contract declares, or infinity."""
    norms = [leaf.contract.clip_norm for leaf, _ in leaves(release.event)]
    return min((norm for norm in norms if norm is not None), default=np.inf)


def encoder_is_public(release: Release) -> bool:
    """Return whether a release declares that its encoder depends on public data only."""
    return all(leaf.contract.encoder is DependsOn.PUBLIC for leaf, _ in leaves(release.event))


def count(release: Release, row: int) -> int:
    """Return how many records are behind one prototype."""
    counts = prototypes(release).counts
    if counts is None:
        raise NotApplicableError("the record counts behind the prototypes were not released")
    return int(counts[row])
