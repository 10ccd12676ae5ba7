"""How far out a clipped record was, told from the mean that it went into: what each mean could be."""

import numpy as np
from jaxtyping import Float64

from accountant.events import ClipSet
from attacks._known_noise import Groups
from privkit.audit.left import Left, clean_means
from privkit.clip import clip_to_ball
from privkit.transcript import Records

_EXACT = 1e-6  # misfit, relative, up to which a mean is taken to be one of shortened canaries
_SAME = 1e-5  # misfit, relative, up to which a mean is taken to be one of known records; ten times that is another
_LEAST = 4  # coordinates of a group that one radius does not fit by chance
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


def farthest_known(one: Left, known: Records) -> float:
    """Return how far out the farthest known record was averaged, in the units of the claimed clip; 0 if not told.

    Told are classes of which every record is known, clipped group by group: their mean before noise is then that of
    records shortened to some radius, and to one radius only, which may be larger than the claimed one or no bound.

    Args:
        one: a release.
        known: records of its client under the encoder that it was made with.
    """
    farthest, labels, means_Pd = 0.0, one.release.payload.tensors()["labels"], clean_means(one)
    if one.groups.clip is not ClipSet.GROUPWISE:
        return farthest
    for label in np.unique(known.labels):
        row, mine = np.flatnonzero(labels == label), known.vectors[known.labels == label].astype(np.float64)
        for group, norm in enumerate(one.groups.norms if len(row) == 1 else ()):
            inside = one.groups.index == group
            if inside.sum() >= _LEAST:
                farthest = max(farthest, _radius(means_Pd[row[0]][inside], mine[:, inside], norm) / norm)
    return farthest


def _radius(mean_d: np.ndarray, records_Nd: np.ndarray, norm: float) -> float:
    """Return the length of the longest of some records in their mean, unless that is of records clipped to ``norm``."""
    sum_d, lengths_N = len(records_Nd) * mean_d, np.linalg.norm(records_Nd, axis=1)
    size = float(np.linalg.norm(sum_d))
    if np.linalg.norm(clip_to_ball(records_Nd, norm=norm).sum(0) - sum_d) <= 10 * _SAME * size:
        return 0.0
    order = np.argsort(lengths_N)
    x_Nd, l_N = records_Nd[order], lengths_N[order]
    units_Nd, none = x_Nd / np.maximum(l_N, np.finfo(float).tiny)[:, None], np.zeros((1, len(sum_d)))
    whole_Jd = np.concatenate(
        [none, x_Nd.cumsum(0)]
    )  # the J shortest as they are, all others as long as each other
    others_Jd = np.concatenate([units_Nd[::-1].cumsum(0)[::-1], none])
    r_J = ((sum_d - whole_Jd) * others_Jd).sum(1) / np.maximum((others_Jd**2).sum(1), np.finfo(float).tiny)
    r_J[-1] = l_N[-1]
    fits_J = np.linalg.norm(whole_Jd + r_J[:, None] * others_Jd - sum_d, axis=1) <= _SAME * size
    between_J = (r_J >= np.concatenate([[0.0], l_N])) & (r_J <= np.concatenate([l_N, [np.inf]]))
    return float(r_J[fits_J & between_J].min()) if (fits_J & between_J).any() else 0.0


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
