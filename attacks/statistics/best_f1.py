"""F1 at the threshold that is best for it: what chance reaches is far above 0, and depends on the sizes."""

from functools import cache

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics.estimate import Estimate, empty_class
from attacks.statistics.roc import roc
from attacks.statistics.scores import as_scores

_EXACT_CELLS = 4000
_RANKS, _LEAST_DRAWS, _AT_ONCE = 5_000_000, 500, 100


def best_f1(members: ArrayLike, non_members: ArrayLike) -> Estimate:
    """Return ``max_t F1(t)``, which is optimistic, next to its mean without any skill.

    F1 is ``2 TP / (TP + FP + M)``, at the prevalence of these scores: calling everybody a member gives
    ``2 M / (2 M + N)``, two thirds for as many members as non-members. There is no interval: the threshold was chosen
    by the scores themselves.

    Returns:
        Estimate in [2 M / (2 M + N), 1]; no value, with the reason, if a class is empty.

    Source: van Rijsbergen (1979), "Information Retrieval", chapter 7, as 1 - E at equal weights.

    >>> found = best_f1([3, 4, 5, 6], [1, 2, 3.5, 4.5])
    >>> round(found.value, 3), round(found.null, 3)
    (0.8, 0.73)
    """
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    m, n = len(member_M), len(non_member_N)
    reason = empty_class(m, n)
    if reason:
        return Estimate.missing(reason, n_members=m, n_non_members=n)
    curve = roc(member_M, non_member_N)
    f1_K = 2 * curve.true_positives_K / (curve.true_positives_K + curve.false_positives_K + m)
    null, how = null_mean(m, n)
    return Estimate(
        value=float(f1_K.max()),
        kind="maximum over thresholds, optimistic: no interval",
        n_members=m,
        n_non_members=n,
        null=null,
        note=f"threshold chosen on the same scores; no-skill mean {how}",
    )


@cache
def null_mean(n_members: int, n_non_members: int) -> tuple[float, str]:
    """Return the mean of the best F1 of a continuous score without any skill, and how it was found.

    Returns:
        A share and "exact"; for sizes with M N above 4,000 the mean over at least 500 random orders, always the same
        ones, and "simulated" with its standard error.

    >>> round(null_mean(10, 10)[0], 3)
    0.697
    """
    check.count(n_members=n_members, n_non_members=n_non_members)
    if n_members * n_non_members <= _EXACT_CELLS:
        return _exact(n_members, n_non_members), "exact"
    mean, error = _simulated(n_members, n_non_members)
    return mean, f"simulated, standard error {error:.1g}"


def _exact(m: int, n: int) -> float:
    """Return the integral of ``P(max F1 >= v)``, which changes at the values that F1 can take and at no others.

    F1 grows with ``TP / (FP + M)``, a ratio of whole numbers, by which the values are told apart.
    """
    hits, false = np.meshgrid(np.arange(1, m + 1), np.arange(n + 1))
    above = hits * (n + m) > m * (false + m)  # everybody called a member is always reached
    top, bottom = hits[above], (false + m)[above]
    common = np.gcd(top, bottom)
    ratio_V2 = np.unique(np.stack([top // common, bottom // common], axis=1), axis=0)
    f1_V = 2 * ratio_V2[:, 0] / ratio_V2.sum(1)
    order = np.argsort(f1_V)
    least = 2 * m / (2 * m + n)
    steps_V = np.diff(f1_V[order], prepend=least)
    return least + float(steps_V @ _reached(ratio_V2[order], m, n))


def _reached(ratio_V2: Int[np.ndarray, "V 2"], m: int, n: int) -> Float[np.ndarray, " V"]:
    """Return the share of orders of M members and N non-members in which ``TP / (FP + M)`` reaches each ratio.

    Walks through the ranks from the top; ``alive[v, i]`` is the probability of i members so far without a hit.
    """
    members, (top_V1, bottom_V1) = np.arange(m + 1), np.hsplit(ratio_V2, 2)
    alive = np.zeros((len(ratio_V2), m + 1))
    alive[:, 0] = 1.0
    hit_V = np.zeros(len(ratio_V2))
    for rank in range(m + n):
        left = m + n - rank
        stepped = alive * (np.clip(n - rank + members, 0, None) / left)
        stepped[:, 1:] += alive[:, :-1] * ((m - members[:-1]) / left)
        over = members * bottom_V1 >= (rank + 1 - members + m) * top_V1
        hit_V += np.where(over, stepped, 0.0).sum(1)
        alive = np.where(over, 0.0, stepped)
    return hit_V


def _simulated(m: int, n: int) -> tuple[float, float]:
    """Return the mean over random orders, and its standard error."""
    rng = np.random.default_rng(0)
    draws = max(_LEAST_DRAWS, _RANKS // (m + n))
    called = np.arange(1, m + n + 1) + m
    found = []
    for start in range(0, draws, _AT_ONCE):
        orders = np.zeros((min(_AT_ONCE, draws - start), m + n), dtype=np.int64)
        orders[:, :m] = 1
        hits = np.cumsum(rng.permuted(orders, axis=1), axis=1)
        found.append((2 * hits / called).max(axis=1))
    best = np.concatenate(found)
    return float(best.mean()), float(best.std(ddof=1) / np.sqrt(draws))
