"""What a server knows of how one release was made: its clip, and the size of the noise on every number."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from accountant.contract import Contract, DependsOn, Relation
from accountant.events import ClipSet, Gaussian, GroupGaussian, Leaf, NonPrivate, leaves
from accountant.moments import NAMES
from accountant.relations import reach
from attacks._base import NotApplicableError
from privkit.release import ByClass, Head, Payload, Prototypes, Release, Update
from privkit.transcript import ServerView


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of coordinates, each with a clip and a noise of its own; one group when there is no difference.

    Attributes:
        index: group of each coordinate, shape [d].
        norms: radius (or semi-axis) of each group, infinite where nothing was clipped.
        stds: standard deviation of the noise on a sum of records, per group; 0 where there was none.
        clip: the set that records were clipped into.
        weights: of sums of moments, what each part was multiplied by before one noise was added to all.
    """

    index: Int64[np.ndarray, " d"]
    norms: tuple[float, ...]
    stds: tuple[float, ...]
    clip: ClipSet = ClipSet.GROUPWISE
    weights: tuple[float, ...] = ()

    @property
    def std_d(self) -> Float64[np.ndarray, " d"]:
        """Return the standard deviation of the noise on each coordinate of a sum of records."""
        return np.array(self.stds)[self.index]

    @property
    def part_stds(self) -> dict[str, float]:
        """Return the standard deviation of the noise on a number of each part of sums, by name; counts have one always.

        All parts share one noise: what a number stands for decides what that is in the number's own unit.
        """
        norm, std = self.norms[0], self.stds[0]
        if not self.weights:  # in the block of counts, a record is one clip norm, and the noise is the same
            return {"count": std / norm}
        units, in_query = (1.0, norm, norm**2, 1.0, 1.0), std / norm * self.weights[1]
        parts = zip(NAMES, units, self.weights, strict=True)
        return {name: in_query * unit / a for name, unit, a in parts if a > 0}


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
            return Groups(index_d, (contract.clip_norm,), (sigma * moved,), weights=contract.weights)
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
            return reach(contract.query, contract.relation, contract.weights)
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
        raise NotApplicableError(f"client {release.client} sent {words(release.payload)}, not prototypes")
    return release.payload.prototypes()


def sent_instead(view: ServerView) -> str:
    """Return in a sentence what clients sent where they sent no prototypes at all; nothing where they did."""
    if not view.releases or any(isinstance(release.payload, ByClass) for release in view.releases):
        return ""
    return f"clients sent {words(view.releases[0].payload)}, not prototypes"


def refuse_other_payloads(view: ServerView) -> None:
    """Raise if clients sent something, but no prototypes."""
    if reason := sent_instead(view):
        raise NotApplicableError(reason)


_UPDATES = {"weights": "trained weights", "gradient": "gradients", "delta": "changes of their weights"}


def words(payload: Payload) -> str:
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
