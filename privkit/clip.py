"""Clipping: what bounds one record's influence. Mechanisms use it, and so do attackers who know of it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from accountant.events import ClipSet

_SHORTEST = 1e-150  # squares of anything below underflow


def clip_to_ball(vectors_ND: np.ndarray, *, norm: float) -> Float64[np.ndarray, "N D"]:
    """Return each row scaled down to an l2 norm of at most ``norm``; shorter rows stay as they are.

    ``norm`` may be infinite, which clips nothing.

    >>> clip_to_ball(np.array([[3.0, 4.0], [0.3, 0.4]]), norm=1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    if not norm > 0:
        raise ValueError(f"norm={norm} must be above 0.")
    vectors = np.asarray(vectors_ND, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.divide(norm, lengths, out=np.ones_like(lengths), where=lengths > norm)


def clip_groups(
    vectors_ND: np.ndarray, group_D: np.ndarray, *, norms: Sequence[float]
) -> Float64[np.ndarray, "N D"]:
    """Return each row with each group of its coordinates clipped to a ball of its own.

    Args:
        vectors_ND: rows to clip.
        group_D: group of each coordinate, an index into ``norms``.
        norms: radius of each group's ball, above 0.

    >>> clip_groups(np.array([[3.0, 4.0, 0.1]]), np.array([0, 0, 1]), norms=(1.0, 1.0))
    array([[0.6, 0.8, 0.1]])
    """
    clipped = np.array(vectors_ND, dtype=np.float64)
    for group, norm in enumerate(norms):
        mine = group_D == group
        clipped[:, mine] = clip_to_ball(clipped[:, mine], norm=norm)
    return clipped


def clip_ellipsoid(
    vectors_ND: np.ndarray, group_D: np.ndarray, *, norms: Sequence[float]
) -> Float64[np.ndarray, "N D"]:
    """Return each row scaled down into an ellipsoid, ``sum_g ||z_g||^2 / a_g^2 <= 1``; rows inside stay as they are.

    Args:
        vectors_ND: rows to clip.
        group_D: group of each coordinate, an index into ``norms``.
        norms: semi-axis of each group, above 0; all equal is one ball.

    >>> clip_ellipsoid(np.array([[3.0, 4.0], [0.3, 0.4]]), np.array([0, 1]), norms=(3.0, 4.0)).round(4)
    array([[2.1213, 2.8284],
           [0.3   , 0.4   ]])
    """
    axis_D = np.asarray(norms, dtype=np.float64)[group_D]
    if not (axis_D > 0).all():
        raise ValueError(f"norms={tuple(norms)} must all be above 0.")
    vectors = np.asarray(vectors_ND, dtype=np.float64)
    lengths = np.linalg.norm(vectors / axis_D, axis=1, keepdims=True)
    return vectors / np.maximum(lengths, 1.0)


CLIPS = {
    ClipSet.GROUPWISE: clip_groups,
    ClipSet.ELLIPSOID: clip_ellipsoid,
    ClipSet.GLOBAL: clip_ellipsoid,
}
"""How records are clipped into each set that an event can declare."""


def unit(vectors_ND: np.ndarray) -> Float64[np.ndarray, "N D"]:
    """Return each row at length 1; a zero row, or one too short to have a direction, becomes zero."""
    vectors = np.asarray(vectors_ND, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > _SHORTEST)
