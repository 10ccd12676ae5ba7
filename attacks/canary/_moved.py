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
from privkit.release import ByClass, Payload, Prototypes, Release, SumsAndCounts
from privkit.transcript import Records, ServerView


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


def larger_by_one(
    view: ServerView, canaries: Records, *, label: int, others: int
) -> Float64[np.ndarray, " N"]:
    """Return log likelihood ratios of "a class holds v beside ``others`` records at -v" against "it does not".

    Args:
        view: what the server saw; the ratios of its releases are added up.
        canaries: v of each, its client and the first class that it takes.
        label: which of its classes, from 0.
        others: other records in that class.

    Raises:
        NotApplicableError: a client released nothing of such a class, or something else than class vectors.
    """
    found, channel = np.zeros(len(canaries)), Channel(view)
    seen = np.zeros(len(canaries), dtype=bool)
    for release in view.releases:
        mine = np.flatnonzero(canaries.clients == release.client)
        wanted, order = canaries.labels[mine] + label, np.argsort(sent := _labels(release), kind="stable")
        place = np.searchsorted(sent[order], wanted)
        held = np.append(sent[order], -1)[place] == wanted
        mine, rows = mine[held], order[place[held]]
        if len(mine):
            groups = _groups(channel, release)
            reach_Nd = clipped(canaries.vectors[mine].astype(np.float64), groups)
            found[mine] += _ratios(release.payload, rows, reach_Nd, groups, others)
            seen[mine] = True
    if not seen.all():
        client = int(canaries.clients[np.argmin(seen)])
        raise NotApplicableError(
            f"client {client} released no prototype of class {canaries.labels[np.argmin(seen)] + label}"
        )
    return found


def _labels(release: Release) -> np.ndarray:
    """Return the class of each row; the classes of canaries have one row each."""
    if not isinstance(release.payload, ByClass):
        raise NotApplicableError(f"clients sent {release.payload.kind}, not prototypes")
    return release.payload.labels


def _groups(channel: Channel, release: Release) -> Groups:
    payload = release.payload
    if isinstance(payload, Prototypes) and payload.counts is None:
        return groups_of(release, np.zeros(payload.vectors.shape[1], dtype=np.int64))
    return channel.groups(release)


@singledispatch
def _ratios(
    payload: Payload, rows: np.ndarray, reach_Nd: np.ndarray, groups: Groups, others: int
) -> Float64[np.ndarray, " N"]:
    raise NotApplicableError(f"clients sent {payload.kind}, not prototypes")


@_ratios.register
def _ratios_of_sums(
    payload: SumsAndCounts, rows: np.ndarray, reach_Nd: np.ndarray, groups: Groups, others: int
) -> Float64[np.ndarray, " N"]:
    std_d = _known(groups.std_d)
    with_it = _log_density(payload.vectors[rows], (1 - others) * reach_Nd, std_d)
    without = _log_density(payload.vectors[rows], -others * reach_Nd, std_d)
    std = _known(np.array([groups.part_stds["count"]]))
    totals_N1 = payload.totals[rows, None]
    with_it += _log_density(totals_N1, np.array([[others + 1.0]]), std)
    return with_it - without - _log_density(totals_N1, np.array([[float(others)]]), std)


@_ratios.register
def _ratios_of_means(
    payload: Prototypes, rows: np.ndarray, reach_Nd: np.ndarray, groups: Groups, others: int
) -> Float64[np.ndarray, " N"]:
    vectors_Nd, with_it_Nd = payload.vectors[rows], (1 - others) / (others + 1) * reach_Nd
    std_d = _known(groups.std_d)
    if payload.counts is None:  # the noise scale is what tells the count
        larger, smaller = std_d / (others + 1), std_d / others
    else:  # the count is claimed to be public, so it is no evidence
        larger = smaller = std_d / payload.counts[rows, None]
    return _log_density(vectors_Nd, with_it_Nd, larger) - _log_density(vectors_Nd, -reach_Nd, smaller)


def _known(std_d: np.ndarray) -> np.ndarray:
    return np.where(std_d > 0, std_d, 1.0)


def _log_density(x_Nd: np.ndarray, mean_Nd: np.ndarray, std_Nd: np.ndarray) -> Float64[np.ndarray, " N"]:
    """Return the logarithm of a normal density, but for a constant."""
    apart_Nd = (x_Nd.astype(np.float64) - mean_Nd) / std_Nd
    return -np.sum(np.log(np.broadcast_to(std_Nd, apart_Nd.shape)), axis=1) - np.square(apart_Nd).sum(1) / 2
