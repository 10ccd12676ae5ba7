"""What other training code computed before its noise, as an auditor keeps it."""

import numpy as np
from jaxtyping import Float64, Int64

from accountant.events import Event, GroupGaussian, leaves
from privkit.errors import InputError
from privkit.release import ByClass, Release, SumsAndCounts, frozen
from privkit.truth import Hidden


def hidden(
    release: Release,
    clean: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    counts: np.ndarray | None = None,
) -> Hidden:
    """Return what led to a release; what cannot have led to it is refused.

    Args:
        release: what was sent.
        clean: its vectors after clip and mean (or sum), before noise; rows as released, shape [P, d].
        groups: group of the event's noise that each coordinate belongs to, from 0, shape [d]; only for noise by group.
        counts: records behind each row, shape [P]; only where noisy counts were sent.

    Raises:
        InputError: a shape, a type or a number does not fit the release.
    """
    payload = release.payload
    if not isinstance(payload, ByClass):
        raise InputError(
            f"clean was given for {payload.kind}; only vectors of classes have a noise to check."
        )
    means = frozen("clean", clean, ndim=2).astype(np.float64)
    if means.shape != payload.vectors.shape:
        raise InputError(
            f"clean has shape {means.shape} and the released vectors {payload.vectors.shape}; give one row for each."
        )
    return Hidden(means, _groups(release.event, means.shape[1], groups), _counts(payload, counts))


def _groups(event: Event, dim: int, groups: np.ndarray | None) -> Int64[np.ndarray, " d"]:
    parts = [len(leaf.noise_multipliers) for leaf, _ in leaves(event) if isinstance(leaf, GroupGaussian)]
    number = max(parts, default=1)
    if groups is None and number == 1:
        return np.zeros(dim, dtype=np.int64)
    found = np.asarray(groups)
    if found.shape != (dim,) or found.dtype.kind not in "iu" or not np.isin(found, np.arange(number)).all():
        raise InputError(
            f"groups has shape {found.shape} and type {found.dtype}: the event has {number} groups of noise; give the "
            f"group of each of {dim} coordinates, from 0 to {number - 1}."
        )
    return found.astype(np.int64)


def _counts(payload: ByClass, counts: np.ndarray | None) -> Float64[np.ndarray, " P"] | None:
    if isinstance(payload, SumsAndCounts) != (counts is not None):
        raise InputError(
            f"counts were {'not ' if counts is None else ''}given for {payload.kind}; give them where noisy counts "
            "were sent, and only there."
        )
    if counts is None:
        return None
    found = frozen("counts", np.asarray(counts, dtype=np.float64), ndim=1)
    if found.shape != payload.labels.shape:
        raise InputError(f"counts has shape {found.shape}; give one for each of {len(payload.labels)} rows.")
    return found
