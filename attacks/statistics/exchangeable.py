"""Do scores know members better than chance, where who is a member was drawn at random within each upload?"""

import numpy as np
from jaxtyping import Bool, Float, Int

DRAWS = 4999
"""Draws of members that an observed one is compared with; no p-value is below one in so many and one."""

_ROUNDING = 1e-9


def exchangeable_p_value(
    scores_N: Float[np.ndarray, " N"], member_N: Bool[np.ndarray, " N"], upload_N: Int[np.ndarray, " N"]
) -> float | None:
    """Return the one-sided p-value of "each upload's members could be any others of its candidates".

    The sum of the members' mid-ranks among all scores, which is the AUC but for a scale, against the same sum for
    members that are drawn anew within every upload. It is exact for any scores, ties included, and however those of an
    upload depend on each other. An interval over few uploads cannot exclude that others behave differently, so it is
    wide even where every member outscores everybody; this asks about the uploads at hand alone.

    Args:
        scores_N: one per candidate, higher = member.
        member_N: who was one.
        upload_N: which upload each candidate is asked about.

    Returns:
        1 where scores are all alike; ``None`` where no upload has both members and others.

    Source: Phipson and Smyth (2010), "Permutation p-values should never be zero", on random draws.

    >>> member = np.array([True, True, True, False, False, False])
    >>> exchangeable_p_value(np.arange(6.0), member, np.zeros(6, np.int64))
    1.0
    """
    rank_N, rng = _mid_ranks(scores_N), np.random.default_rng(0)
    drawn_D, mixed = np.zeros(DRAWS), False
    for upload in np.unique(upload_N):
        own, members = rank_N[upload_N == upload], int(member_N[upload_N == upload].sum())
        mixed |= 0 < members < len(own)
        order_DK = rng.permuted(np.tile(own, (DRAWS, 1)), axis=1)
        drawn_D += order_DK[:, :members].sum(1)
    if not mixed:
        return None
    reached = int((drawn_D >= rank_N[member_N].sum() - _ROUNDING).sum())
    return (reached + 1) / (DRAWS + 1)


def _mid_ranks(scores_N: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return ranks from 0; scores that tie share the mean of theirs."""
    ordered_N = np.sort(scores_N)
    first_N, after_N = (np.searchsorted(ordered_N, scores_N, side=side) for side in ("left", "right"))
    return (first_N + after_N - 1) / 2
