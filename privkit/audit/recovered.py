"""How far out a clipped record was, told from the mean that it went into: what each mean could be."""

import numpy as np
from jaxtyping import Float64

from accountant.events import ClipSet
from attacks._known_noise import Groups
from privkit.audit.left import Left, clean_means
from privkit.transcript import Records

_EXACT = 1e-6  # misfit, relative, up to which a mean is taken to be one of shortened canaries
_PER_CANARY = 2  # coordinates of a group per canary of a class, or the fit proves nothing


def longest(one: Left, planted: Records | None) -> float:
    """Return how far out the farthest thing averaged is, in the units of the claimed clip: above 1 is outside of it.

    No mean of clipped records is outside. A canary's direction is known: where a class's mean is, to the last digits,
    a mean of its canaries each shortened group by group, those lengths are what the mechanism clipped them to.

    Args:
        one: a release.
        planted: canaries of its client as they were planted; ``None`` where there are none.
    """
    means_Pd = clean_means(one)
    farthest = float(_gauges(_lengths(means_Pd, one.groups), one.groups).max(initial=0.0))
    if planted is None:
        return farthest
    for label in np.unique(planted.labels):
        mine = planted.vectors[planted.labels == label].astype(np.float64)
        row = np.flatnonzero(one.release.payload.tensors()["labels"] == label)
        if len(row) == 1:
            lengths_GK = _recovered(means_Pd[row[0]] * len(mine), mine, one.groups)
            farthest = max(farthest, float(_gauges(lengths_GK, one.groups).max(initial=0.0)))
    return farthest


def _recovered(sum_d: np.ndarray, canaries_Kd: np.ndarray, groups: Groups) -> Float64[np.ndarray, "G K"]:
    """Return the length that each canary has in a sum of them, group by group; 0 where that cannot be told."""
    found_GK = np.zeros((len(groups.norms), len(canaries_Kd)))
    for group in range(len(groups.norms)):
        mine = groups.index == group
        known_Kd = canaries_Kd[:, mine]
        if mine.sum() < _PER_CANARY * len(canaries_Kd):
            continue
        kept_K = np.linalg.lstsq(known_Kd.T, sum_d[mine], rcond=None)[0]
        misfit = np.linalg.norm(known_Kd.T @ kept_K - sum_d[mine])
        if misfit <= _EXACT * np.linalg.norm(sum_d[mine]):
            found_GK[group] = np.abs(kept_K) * np.linalg.norm(known_Kd, axis=1)
    return found_GK


def _lengths(vectors_Nd: np.ndarray, groups: Groups) -> Float64[np.ndarray, "G N"]:
    return np.array(
        [np.linalg.norm(vectors_Nd[:, groups.index == group], axis=1) for group in range(len(groups.norms))]
    )


def _gauges(lengths_GN: np.ndarray, groups: Groups) -> Float64[np.ndarray, " N"]:
    """Return how far out records of these lengths are in the set that they are claimed to be clipped into."""
    share_GN = lengths_GN / np.array(groups.norms)[:, None]
    return share_GN.max(0) if groups.clip is ClipSet.GROUPWISE else np.sqrt((share_GN**2).sum(0))
