"""Clipping: what bounds one record's influence. Mechanisms use it, and so do attackers who know of it."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int32

from accountant.events import ClipSet

_SHORTEST = 1e-150  # squares of anything below underflow
_FAR = 2.0**100  # from there on, what a row is clipped to depends on its direction alone, to the last bit
_MOST_STEPS = 100
_ROUNDING = 1e-14


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
    scaled, exponent_N1 = _scaled(vectors)
    short = np.linalg.norm(scaled, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        outside = np.ldexp(short, exponent_N1) > norm
    return np.where(outside, scaled * np.divide(norm, short, out=np.ones_like(short), where=outside), vectors)


def _scaled(vectors_ND: np.ndarray) -> tuple[Float64[np.ndarray, "N D"], Int32[np.ndarray, "N 1"]]:
    """Return each row times a power of two that brings its largest number into [1, 2), and what undoes that."""
    exponent = np.frexp(np.abs(vectors_ND).max(axis=1, keepdims=True, initial=0.0))[1] - 1
    return np.ldexp(vectors_ND, -exponent), exponent


def brought_near(vectors_ND: np.ndarray, *, norm: float) -> Float64[np.ndarray, "N D"]:
    """Return each row, one that lies far beyond ``norm`` shortened: it is clipped to the same, and has squares.

    >>> brought_near(np.array([[1e200, 1e200], [3.0, 4.0]]), norm=1.0)
    array([[1.2676506e+30, 1.2676506e+30],
           [3.0000000e+00, 4.0000000e+00]])
    """
    vectors = np.asarray(vectors_ND, dtype=np.float64)
    largest, most = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0), _FAR * float(norm)
    return vectors * np.divide(most, largest, out=np.ones_like(largest), where=largest > most)


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
    """Return each row moved to the nearest point of an ellipsoid, ``sum_g ||z_g||^2 / a_g^2 <= 1``.

    Rows inside stay as they are. Balls that lie inside the ellipsoid are never nearer, so it loses less of a row
    than clipping group by group to such balls.

    Args:
        vectors_ND: rows to clip.
        group_D: group of each coordinate, an index into ``norms``.
        norms: semi-axis of each group, above 0; all equal is one ball.

    >>> clip_ellipsoid(np.array([[3.0, 4.0], [0.3, 0.4]]), np.array([0, 1]), norms=(5.0, 1.0)).round(4)
    array([[2.6139, 0.8525],
           [0.3   , 0.4   ]])
    """
    axes_G1 = np.asarray(norms, dtype=np.float64)[:, None]
    if not (axes_G1 > 0).all():
        raise ValueError(f"norms={tuple(norms)} must all be above 0.")
    near, unit_length = brought_near(vectors_ND, norm=axes_G1.max()), 2.0 ** (np.frexp(axes_G1.max())[1] - 1)
    measured = near / unit_length
    lengths_GN = np.array(
        [np.linalg.norm(measured[:, group_D == group], axis=1) for group in range(len(axes_G1))]
    )
    return near * ellipsoid_factors(lengths_GN, axes_G1 / unit_length)[group_D].T


def ellipsoid_factors(lengths: np.ndarray, axes: np.ndarray) -> Float64[np.ndarray, "..."]:
    r"""Return what each group of a row is multiplied by on the way to the nearest point of an ellipsoid.

    That is ``1 / (1 + t / a_g^2)`` with the root ``t >= 0`` of ``sum_g (||z_g|| / a_g)^2 / (1 + t / a_g^2)^2 = 1``,
    found by Newton's method on the inverse square root of the sum. That is concave in t and rises, so no step from
    below goes too far.

    Args:
        lengths: l2 norm of each group of each row, groups first; at least 0.
        axes: semi-axis of each group, above 0; shaped so that it broadcasts with ``lengths``.

    Returns:
        In (0, 1], groups first.

    Source: More and Sorensen (1983), "Computing a trust region step", Section 3
    """
    inverse, share = np.asarray(axes, dtype=np.float64) ** -2.0, (lengths / axes) ** 2
    t = np.zeros(share.shape[1:])
    for _ in range(_MOST_STEPS):
        kept = 1 / (1 + t * inverse)
        whole = (share * kept**2).sum(0)
        if (whole <= 1 + _ROUNDING).all():
            break
        root = np.sqrt(np.maximum(whole, 1.0))
        slope = (share * inverse * kept**3).sum(0) / root**3
        t = t + np.divide(1 - 1 / root, slope, out=np.zeros_like(t), where=root > 1)
    kept = 1 / (1 + t * inverse)
    return kept / np.sqrt(np.maximum((share * kept**2).sum(0), 1.0))


CLIPS = {
    ClipSet.GROUPWISE: clip_groups,
    ClipSet.ELLIPSOID: clip_ellipsoid,
    ClipSet.GLOBAL: clip_ellipsoid,
}
"""How records are clipped into each set that an event can declare."""


def unit(vectors_ND: np.ndarray) -> Float64[np.ndarray, "N D"]:
    """Return each row at length 1; a zero row, or one too short to have a direction, becomes zero."""
    vectors = np.asarray(vectors_ND, dtype=np.float64)
    scaled, exponent_N1 = _scaled(vectors)
    short = np.linalg.norm(scaled, axis=1, keepdims=True)
    long_enough = short > np.ldexp(_SHORTEST, -exponent_N1)
    return np.divide(scaled, short, out=np.zeros_like(vectors), where=long_enough)
