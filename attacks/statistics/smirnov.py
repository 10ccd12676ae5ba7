"""The largest gap between two empirical distributions when members and non-members are exchangeable."""

import math

import numpy as np
from scipy import special

from accountant import check
from attacks.statistics import hypergeometric

_EXACT_CELLS = 4_000_000


def null_mean(n_members: int, n_non_members: int) -> float:
    """Return the mean of ``max_t (TPR - FPR)`` for a continuous score without any skill; exact for any sizes.

    The maximum runs over partial sums of an exchangeable sequence, +1/M per member and -1/N per non-member,
    so Spitzer's identity gives its mean as ``sum_k E[S_k^+] / k``, each term a hypergeometric mean deviation.

    Source: Spitzer (1956), Trans. AMS 82, Theorem 4.1; equal sizes: sum_j C(2n, n-j) / (n C(2n, n)).

    >>> [round(null_mean(n, n), 3) for n in (20, 100, 1000)]
    [0.174, 0.084, 0.028]
    """
    check.count(n_members=n_members, n_non_members=n_non_members)
    total = n_members + n_non_members
    k = np.arange(1, total)
    above = k * n_members // total + 1
    logs = hypergeometric.log_probability(above, draws=k, good=n_members, bad=n_non_members)
    # sum_{x >= a} (x - mean) p(x) = a (total - M - k + a) p(a) / total, with a just above the mean
    half_deviation = above * (n_non_members - k + above) / total * np.exp(logs)
    return float(np.sum(half_deviation / k) * (1 / n_members + 1 / n_non_members))


def p_value(excess: int, n_members: int, n_non_members: int) -> tuple[float, str]:
    """Return ``P(max_t (TPR - FPR) >= excess / (M N))`` without any skill, and how it was found.

    Args:
        excess: ``max_t (N TP(t) - M FP(t))``, a whole number from 0 to ``M N``.
        n_members: M.
        n_non_members: N.

    Returns:
        Probability and "exact" or "asymptotic". Exact for continuous scores and an upper bound under ties;
        the asymptotic value (sizes M N above 4 million, unequal) is Hodges' corrected tail.

    Source: Smirnov (1944) for equal sizes; Hodges (1958), Ark. Mat. 3, Eq. 5.3.

    >>> round(p_value(18 * 100, 100, 100)[0], 4)
    0.0391
    """
    m, n = n_members, n_non_members
    if excess <= 0:
        return 1.0, "exact"
    if m == n:
        steps = -(-excess // n)
        ratio = special.betaln(n + 1, n + 1) - special.betaln(n - steps + 1, n + steps + 1)
        return float(min(1.0, math.exp(ratio))), "exact"
    if m * n <= _EXACT_CELLS:
        return _lattice(excess, m, n), "exact"
    return _hodges(excess / (m * n), m, n), "asymptotic"


def _lattice(excess: int, m: int, n: int) -> float:
    """Return the share of orders of M members and N non-members whose path ever reaches the excess.

    Walks through the ranks from the top; ``alive[i]`` is the probability of i members so far without a hit.
    Hits are summed, not subtracted from one, so that tiny probabilities keep their digits.
    """
    members = np.arange(m + 1)
    alive = np.zeros(m + 1)
    alive[0] = 1.0
    hit = 0.0
    for rank in range(m + n):
        left = m + n - rank
        stepped = alive * np.clip(n - rank + members, 0, None) / left
        stepped[1:] += alive[:-1] * (m - members[:-1]) / left
        alive = stepped
        over = members * n - (rank + 1 - members) * m >= excess
        hit += float(alive[over].sum())
        alive[over] = 0.0
    return min(1.0, hit)


def _hodges(gap: float, m: int, n: int) -> float:
    large, small = max(m, n), min(m, n)
    z = gap * math.sqrt(m * n / (m + n))
    skew = (large + 2 * small) / math.sqrt(m * n * (m + n))
    return min(1.0, math.exp(-2 * z * z - 2 * z * skew / 3))
