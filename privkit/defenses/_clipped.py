"""The means of clipped records, without a clipped copy of all of them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64

from accountant.events import ClipSet
from privkit.clip import CLIPS, ellipsoid_factors
from privkit.defenses._base import Known
from privkit.defenses._means import ClassMeans, Groups, class_means, refuse_no_records
from privkit.embeddings import Embeddings
from privkit.prototypes.mean import Mean

_SQUARES = (
    1e100  # lengths and radii between its inverse and itself have squares that are neither 0 nor infinite
)


def clipped_means(
    embeddings: Embeddings,
    known: Known,
    *,
    clip: ClipSet,
    group_d: Int64[np.ndarray, " d"],
    norms: Sequence[float],
) -> ClassMeans:
    """Return the means of clipped records, which are :func:`class_means` of what :data:`privkit.clip.CLIPS` gives.

    A class is clipped while it is averaged, so that no clipped copy of all records is made. Records so far out that
    their squares are none, and clusters, which are made of clipped records, go the long way.

    Args:
        embeddings: of one client, not clipped.
        known: whose summary says what is averaged.
        clip: the set that records are clipped into.
        group_d: group of each coordinate, an index into ``norms``.
        norms: radius or semi-axis of each group, above 0.
    """
    found = None
    if type(known.summary) is Mean:  # a subclass may look at the clipped records
        found = _means(embeddings, clip, group_d, np.asarray(norms, dtype=np.float64))
    if found is None:
        clipped = CLIPS[clip](embeddings.vectors, group_d, norms=norms)
        found = class_means(embeddings.with_vectors(clipped), known)
    return found


def _means(
    embeddings: Embeddings, clip: ClipSet, group_d: np.ndarray, axes_G: np.ndarray
) -> ClassMeans | None:
    """Return the means of clipped records by class, or ``None`` where lengths or radii have no squares."""
    refuse_no_records(embeddings)
    if not ((axes_G > 1 / _SQUARES) & (axes_G < _SQUARES)).all():
        return None
    groups = Groups.of(embeddings.labels)
    sums_Pd = np.zeros((len(groups.labels), embeddings.vectors.shape[1]))
    for p, rows in groups.rows():
        z_nd = embeddings.vectors[rows]
        lengths_Gn = _lengths(z_nd, group_d, len(axes_G))
        if not lengths_Gn.max() < _SQUARES:
            return None
        kept_Gn = _kept(clip, lengths_Gn, axes_G[:, None])
        sums_Pd[p] += np.take_along_axis(kept_Gn @ z_nd, group_d[None], axis=0)[0]
    return ClassMeans(sums_Pd / groups.counts[:, None], groups.labels, groups.counts)


def _lengths(z_nd: np.ndarray, group_d: np.ndarray, groups: int) -> Float64[np.ndarray, "G n"]:
    """Return the l2 norm of each group of each record; not finite where a square is not."""
    member_Gd = (np.arange(groups)[:, None] == group_d).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # 0 times an infinite square is none
        return np.sqrt(member_Gd @ np.square(z_nd).T)


def _kept(clip: ClipSet, lengths_Gn: np.ndarray, axes_G1: np.ndarray) -> Float64[np.ndarray, "G n"]:
    """Return what each group of each record is multiplied by when it is clipped, in (0, 1]."""
    if clip is not ClipSet.GROUPWISE:
        return ellipsoid_factors(lengths_Gn, axes_G1)
    return np.divide(axes_G1, lengths_Gn, out=np.ones_like(lengths_Gn), where=lengths_Gn > axes_G1)
