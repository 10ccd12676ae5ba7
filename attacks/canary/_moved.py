"""Log likelihood ratio of a class with one more record against the class without it, as the server sees it."""

from functools import singledispatch

import numpy as np
from jaxtyping import Float64

from accountant.contract import Relation
from accountant.events import leaves
from attacks._averaged import Channel
from attacks._base import NotApplicableError
from attacks._known_noise import Groups, groups_of
from privkit.clip import CLIPS, clip_groups
from privkit.release import Payload, Prototypes, Release, SumsAndCounts
from privkit.transcript import ServerView


def refuse_unless(view: ServerView, relation: Relation) -> None:
    """Raise unless every release claims neighbours that a canary of this kind is about."""
    for release in view.releases:
        for leaf, _ in leaves(release.event):
            if leaf.contract.relation is not relation:
                raise NotApplicableError(
                    f"such a canary is a question about {relation.value!r}, and the claim is about "
                    f"{leaf.contract.relation.value!r}"
                )


def clipped(vectors_Nd: np.ndarray, groups: Groups) -> Float64[np.ndarray, "N d"]:
    """Return records as they are claimed to be clipped."""
    if not np.isfinite(groups.norms).all():
        return clip_groups(vectors_Nd, groups.index, norms=groups.norms)
    return CLIPS[groups.clip](vectors_Nd, groups.index, norms=groups.norms)


def rows_of(view: ServerView, *, client: int, label: int) -> list[tuple[Release, int]]:
    """Return each release that holds a class of canaries, and the row it is in; none at all is refused."""
    found = view.prototypes(client=client, label=label)
    if not found:
        raise NotApplicableError(f"client {client} released no prototype of class {label}")
    return found


def larger_by_one(
    channel: Channel, release: Release, row: int, vector_d: np.ndarray, *, others: int
) -> float:
    """Return the log likelihood ratio of "the class holds v beside ``others`` records at -v" against "it does not"."""
    payload = release.payload
    exact = isinstance(payload, Prototypes) and payload.counts is None
    groups = groups_of(release, np.zeros(len(vector_d), dtype=np.int64)) if exact else channel.groups(release)
    reach_d = clipped(vector_d[None], groups)[0]
    return _ratio(payload, row, reach_d, groups, others)


@singledispatch
def _ratio(payload: Payload, row: int, reach_d: np.ndarray, groups: Groups, others: int) -> float:
    raise NotApplicableError(f"clients sent {payload.kind}, not prototypes")


@_ratio.register
def _ratio_of_sums(
    payload: SumsAndCounts, row: int, reach_d: np.ndarray, groups: Groups, others: int
) -> float:
    std_d = _known(groups.std_d)
    sums = _log_density(payload.vectors[row], (1 - others) * reach_d, std_d)
    sums -= _log_density(payload.vectors[row], -others * reach_d, std_d)
    # in the block of counts, a record is one clip norm, and the noise is the same
    std = _known(np.array([groups.stds[0] / groups.norms[0]]))
    total = payload.totals[row : row + 1]
    return (
        sums
        + _log_density(total, np.array([others + 1.0]), std)
        - _log_density(total, np.array([float(others)]), std)
    )


@_ratio.register
def _ratio_of_means(payload: Prototypes, row: int, reach_d: np.ndarray, groups: Groups, others: int) -> float:
    vector_d, with_it = payload.vectors[row], (1 - others) / (others + 1) * reach_d
    std_d = _known(groups.std_d)
    if payload.counts is None:  # the noise scale is what tells the count
        return _log_density(vector_d, with_it, std_d / (others + 1)) - _log_density(
            vector_d, -reach_d, std_d / others
        )
    # the count is claimed to be public, so it is no evidence
    std_d = std_d / float(payload.counts[row])
    return _log_density(vector_d, with_it, std_d) - _log_density(vector_d, -reach_d, std_d)


def _known(std_d: np.ndarray) -> np.ndarray:
    return np.where(std_d > 0, std_d, 1.0)


def _log_density(x_d: np.ndarray, mean_d: np.ndarray, std_d: np.ndarray) -> float:
    """Return the logarithm of a normal density, but for a constant."""
    return float(-np.sum(np.log(std_d)) - np.sum(((x_d.astype(np.float64) - mean_d) / std_d) ** 2) / 2)
