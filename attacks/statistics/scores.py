"""Scores: one finite float64 per candidate, higher means "member". Never flipped, never transformed."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike


def as_scores(values: ArrayLike, *, name: str) -> Float[np.ndarray, " N"]:
    """Return scores as a one-dimensional float64 array, or refuse them.

    | given | result |
    |---|---|
    | list, tuple, array, tensor of any real dtype, shape (N,) or (N, 1) | shape (N,), float64 |
    | nothing, shape (0,) | shape (0,); what needs scores then says why it has no value |
    | masked array with masked entries | refused: masked scores are missing scores |
    | NaN, None, infinity | refused, naming the index of the first one |

    Args:
        values: scores of one class, in any unit.
        name: what the scores are called in an error.

    Raises:
        ValueError: not numbers, not one column, or not finite.

    >>> as_scores([[1], [0.5]], name="members")
    array([1. , 0.5])
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; drop them and say how many were dropped.")
    column = _column(_as_float64(values, name=name), name=name)
    bad = np.flatnonzero(~np.isfinite(column))
    if bad.size:
        what = "NaN" if np.isnan(column[bad[0]]) else str(column[bad[0]])
        raise ValueError(
            f"{name}[{bad[0]}] is {what}; give finite scores, or drop that candidate and say how many were."
        )
    return column


def split(
    scores_N: ArrayLike, member_N: ArrayLike
) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " K"]]:
    """Return the scores of the members and those of the non-members, each in its given order.

    Args:
        scores_N: one score per candidate, higher = member; shape (N,) or (N, 1).
        member_N: one truth value per candidate: bool, or 0 and 1; shape (N,) or (N, 1).

    Returns:
        Two float64 arrays. Either may be empty: a metric of an empty class has no value and a reason.

    Raises:
        ValueError: lengths differ, a score is not finite, or a truth value is neither 0 nor 1.

    >>> split([0.9, 0.2, 0.7], [True, False, True])
    (array([0.9, 0.7]), array([0.2]))
    """
    scores = as_scores(scores_N, name="scores")
    member = _column(np.asarray(member_N), name="member")
    if len(member) != len(scores):
        raise ValueError(
            f"member has {len(member)} entries for {len(scores)} scores; give one truth value per score."
        )
    strange = ~np.isin(member, (0, 1)) if member.dtype.kind in "buif" else np.ones(len(member), bool)
    if strange.any():
        index = int(np.argmax(strange))
        raise ValueError(
            f"member[{index}] is {member[index]!r}; give True or 1 for a member, False or 0 for a non-member."
        )
    is_member = member.astype(bool)
    return scores[is_member], scores[~is_member]


def _as_float64(values: ArrayLike, *, name: str) -> Float[np.ndarray, "..."]:
    """Return the values as float64, whatever holds them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} cannot be read as real numbers ({error}); give a list, an array or a detached tensor."
        ) from None


def _column(values: np.ndarray, *, name: str) -> np.ndarray:
    """Return a vector or a one-column matrix as a vector."""
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"{name} has shape {values.shape}; give one score per candidate, shape (N,) or (N, 1)."
        )
    return values
