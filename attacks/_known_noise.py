"""What a server knows of how each release was made: its clip, and the size of the noise on every number."""

from dataclasses import dataclass
from functools import cached_property, singledispatch

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import Contract, DependsOn, Relation
from accountant.events import ClipSet, Gaussian, GroupGaussian, Leaf, NonPrivate, leaves
from accountant.relations import reach
from attacks._base import NotApplicableError
from privkit.clip import brought_near, ellipsoid_factors
from privkit.release import ByClass, Payload, Prototypes, Release, SumsAndCounts
from privkit.transcript import ServerView

Found = list[tuple[Release, int]]
"""Releases that hold a class, in the order of their rounds, each with the row that it is in."""


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
    """All releases of one client's class as one: the precision-weighted mean over rounds, by coordinate.

    It is a sufficient statistic when the mean underneath is the same in every round, that is, when the
    encoder and the clip are: the log likelihood ratios of the rounds then add up to that of this mean.

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

        Args:
            client: whose prototypes.
            label: of which class.
            drifts: whether the mean itself may move from round to round; by default what the encoders say.
                The first round, whose weights are public, then counts as it is, and a later one is
                trusted less the further it has moved beyond what its noise explains.
        """
        found = self.view.prototypes(client=client, label=label)
        if not found:
            raise NotApplicableError(f"client {client} released no prototype of class {label}")
        vectors_Td, counts_T = _means(found[0][0].payload, found)
        groups = [self.groups(release) for release, _ in found]
        std_Td = np.array([g.std_d for g in groups]) / counts_T[:, None]
        variance_Td = std_Td**2
        if self.drifts if drifts is None else drifts:
            moved_T = ((vectors_Td - vectors_Td[0]) ** 2).mean(1)
            expected_T = variance_Td.mean(1) + variance_Td[0].mean()
            variance_Td = variance_Td + np.maximum(0.0, moved_T - expected_T)[:, None]
        weight_Td, left_d = _weights(variance_Td)
        return Averaged(
            vector=(weight_Td * vectors_Td).sum(0),
            variance=left_d,
            count=float(counts_T[-1]),
            rounds=tuple(groups),
            weight_Td=weight_Td,
        )


@singledispatch
def _means(payload: Payload, found: Found) -> tuple[Float64[np.ndarray, "T d"], Float64[np.ndarray, " T"]]:
    """Return the mean vector of a class in each round it was released in, and the records behind it."""
    vectors_Td = np.array([prototypes(r).vectors[row] for r, row in found], dtype=np.float64)
    return vectors_Td, np.array([count(release, row) for release, row in found], dtype=np.float64)


@_means.register
def _means_of_sums(
    payload: SumsAndCounts, found: Found
) -> tuple[Float64[np.ndarray, "T d"], Float64[np.ndarray, " T"]]:
    # the number of records is the same in all rounds: their mean has less noise than any of them
    rows = [(_sums(release), row) for release, row in found]
    count = max(1.0, float(np.mean([sent.totals[row] for sent, row in rows])))
    sums_Td = np.array([sent.vectors[row] for sent, row in rows], dtype=np.float64)
    return sums_Td / count, np.full(len(rows), count)


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
        raise NotApplicableError(f"client {release.client} released a {release.payload.kind}, no prototypes")
    return release.payload.prototypes()


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
