"""Do scores know members better than chance, where who is a member was drawn at random within each upload?"""

import math

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special


def exchangeable_p_value(
    scores_N: Float[np.ndarray, " N"], member_N: Bool[np.ndarray, " N"], upload_N: Int[np.ndarray, " N"]
) -> float | None:
    """Return the one-sided p-value of "each upload's members could be any others of its candidates".

    The sum of the members' mid-ranks among all scores, which is the AUC but for a scale, against its exact mean and
    variance when members are drawn anew within every upload; normal tail, continuity correction. Scores of one upload may depend on each
    other in any way. An interval over few uploads cannot exclude that others behave differently, so it is wide even
    where every member outscores everybody; this asks about the uploads at hand alone.

    Args:
        scores_N: one per candidate, higher = member.
        member_N: who was one.
        upload_N: which upload each candidate is asked about.

    Returns:
        1 where scores are all alike; ``None`` where no upload has both members and others.

    Source: van Elteren (1960), "On the combination of independent two-sample tests of Wilcoxon", with one ranking of
        all scores.

    >>> member = np.array([True, True, True, False, False, False])
    >>> round(exchangeable_p_value(np.arange(6.0)[::-1], member, np.zeros(6, np.int64)), 4)
    0.0404
    """
    rank_N = _mid_ranks(scores_N)
    mean, variance, mixed = 0.0, 0.0, False
    for upload in np.unique(upload_N):
        own, drawn = rank_N[upload_N == upload], int(member_N[upload_N == upload].sum())
        mean += drawn * float(own.mean())
        if 0 < drawn < len(own):
            mixed = True
            variance += drawn * (len(own) - drawn) / len(own) * float(own.var(ddof=1))
    if not mixed:
        return None
    excess = float(rank_N[member_N].sum()) - mean - 0.5
    return float(special.ndtr(-excess / math.sqrt(variance))) if variance > 0 else 1.0


def _mid_ranks(scores_N: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Return ranks from 0; scores that tie share the mean of theirs."""
    ordered_N = np.sort(scores_N)
    first_N, after_N = (np.searchsorted(ordered_N, scores_N, side=side) for side in ("left", "right"))
    return (first_N + after_N - 1) / 2
