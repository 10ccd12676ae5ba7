"""What the event of a release tells an attacker about the noise on one prototype."""

from dataclasses import dataclass

import numpy as np

from accountant.contract import DependsOn, Relation
from accountant.events import Gaussian, NonPrivate, leaves
from attacks._base import NotApplicableError
from privkit.release import Prototypes, Release
from privkit.transcript import ServerView


@dataclass(frozen=True, eq=False, kw_only=True)
class Averaged:
    """All releases of one client's class as one: the precision-weighted mean over rounds.

    It is a sufficient statistic when the mean underneath is the same in every round, that is, when the
    encoder is frozen: the log likelihood ratios of the rounds then add up to that of this mean.

    Attributes:
        vector: shape [d].
        std: standard deviation of the noise left on each coordinate; 0 when there was none.
        count: records behind it.
        clip_norm: R, or infinity when records were not clipped.
    """

    vector: np.ndarray
    std: float
    count: int
    clip_norm: float


def noise_std(release: Release, row: int) -> float:
    """Return the standard deviation of the noise on one prototype, from public parameters alone."""
    match release.event:
        case NonPrivate():
            return 0.0
        case Gaussian(noise_multiplier=sigma, contract=contract) if contract.clip_norm is not None:
            return sigma * _reach(contract.relation) * contract.clip_norm / _count(release, row)
        case _:
            raise NotApplicableError(
                f"the noise of {type(release.event).__name__} is not known per coordinate; "
                "declare the clip norm in the event's contract"
            )


def _reach(relation: Relation) -> float:
    """Return how many clip norms one record can move a sum of vectors by."""
    match relation:
        case Relation.REPLACE_SAME_LABEL | Relation.REPLACE_ANY_LABEL:
            return 2.0
        case Relation.ZERO_OUT:
            return 1.0
        case _:
            raise NotApplicableError(f"the noise on a mean is not known under {relation.value!r}")


def averaged(view: ServerView, *, client: int, label: int, drifts: bool) -> Averaged:
    """Return one client's class, averaged over the rounds it was released in.

    Args:
        view: what the server saw.
        client: whose prototypes.
        label: of which class.
        drifts: whether the mean itself may move from round to round because a private encoder is
            trained. The first round, whose weights are public, then counts as it is, and a later one
            is trusted less the further it has moved beyond what its noise explains.
    """
    found = view.prototypes(client=client, label=label)
    if not found:
        raise NotApplicableError(f"client {client} released no prototype of class {label}")
    vectors_Td = np.array([prototypes(r).vectors[row] for r, row in found], dtype=np.float64)
    variance_T = np.array([noise_std(release, row) for release, row in found]) ** 2
    if drifts:
        moved_T = ((vectors_Td - vectors_Td[0]) ** 2).mean(1)
        variance_T = variance_T + np.maximum(0.0, moved_T - variance_T - variance_T[0])
    exact_T = variance_T == 0
    weight_T = exact_T.astype(float) if exact_T.any() else 1.0 / variance_T
    last, row = found[-1]
    return Averaged(
        vector=weight_T @ vectors_Td / weight_T.sum(),
        std=0.0 if exact_T.any() else float(weight_T.sum() ** -0.5),
        count=_count(last, row),
        clip_norm=clip_norm(last),
    )


def prototypes(release: Release) -> Prototypes:
    """Return a release's payload, if it holds prototypes."""
    if not isinstance(release.payload, Prototypes):
        raise NotApplicableError(f"client {release.client} released a {release.payload.kind}, no prototypes")
    return release.payload


def clip_norm(release: Release) -> float:
    """Return the clip norm that a release's contract declares, or infinity."""
    norms = [leaf.contract.clip_norm for leaf, _ in leaves(release.event)]
    return min((norm for norm in norms if norm is not None), default=np.inf)


def encoder_is_public(release: Release) -> bool:
    """Return whether a release declares that its encoder depends on public data only."""
    return all(leaf.contract.encoder is DependsOn.PUBLIC for leaf, _ in leaves(release.event))


def _count(release: Release, row: int) -> int:
    counts = prototypes(release).counts
    if counts is None:
        raise NotApplicableError("the record counts behind the prototypes were not released")
    return int(counts[row])
