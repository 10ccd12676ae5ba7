"""Is one cell better than another? Both were run with the same seeds, so the differences of each seed are tested.

A seed draws the split of the records, the noise and the start of training; the records themselves are the same in all.
What is tested is therefore whether the difference would be there with other draws, not with other data.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from attacks.statistics.seeds import OverSeeds, over_seeds

_DIGITS = 12
"""Decimals to which differences are told apart: means of shares differ by more, or only by rounding."""


@dataclass(frozen=True, kw_only=True)
class Paired:
    """The difference of two cells over the seeds that both have.

    Attributes:
        difference: one minus the other, over seeds.
        p_t: two-sided, of the paired t test; ``None`` where it is not defined.
        p_rank: two-sided, of the exact signed-rank test; ``None`` likewise. No smaller than ``2 / 2**n``.
        note: the reason for whatever is ``None``.
    """

    difference: OverSeeds
    p_t: float | None
    p_rank: float | None
    note: str = ""


def paired(one: Mapping[int, float], other: Mapping[int, float]) -> Paired:
    """Return the difference of two cells, paired by seed; a seed that only one of them has is left out.

    Args:
        one: a number per seed, such as the mean accuracy over domains.
        other: what is subtracted.

    >>> found = paired({0: 0.81, 1: 0.84, 2: 0.80}, {0: 0.80, 1: 0.82, 2: 0.77, 3: 0.9})
    >>> round(found.difference.mean, 3), round(found.p_t, 3), found.p_rank
    (0.02, 0.074, 0.25)
    """
    d = np.array([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]).round(_DIGITS)
    found = over_seeds(d.tolist())
    if len(d) < 2:
        note = "they share one seed; run at least two" if len(d) else "they share no seed"
        return Paired(difference=found, p_t=None, p_rank=None, note=note)
    same = "" if d.std() else "paired t: the difference is the same in every seed"
    return Paired(difference=found, p_t=None if same else _student(found), p_rank=signed_rank(d), note=same)


def _student(found: OverSeeds) -> float:
    """Return the two-sided p-value of mean 0 under normal differences."""
    assert found.mean is not None
    assert found.se is not None
    return float(2 * special.stdtr(found.n - 1, -abs(found.mean / found.se)))


def signed_rank(d: np.ndarray) -> float:
    """Return the exact two-sided p-value of Wilcoxon's signed-rank test, ties and zeros included.

    Under the null hypothesis every sign of the differences is as likely as the other: the p-value is the share of all
    sign patterns whose sum of positive ranks lies at least as far from its mean. Ties have their mean rank, and zeros
    are left out; all zeros give 1.

    Source: Wilcoxon (1945), Biometrics Bulletin 1; the distribution by convolution over ranks.
    """
    d = d[d != 0]
    if not len(d):
        return 1.0
    _, index, count = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    twice_rank = (2 * np.cumsum(count) - count + 1)[index]  # mean ranks are halves
    patterns = np.ones(1)
    for step in twice_rank:
        shifted = np.pad(patterns, (int(step), 0))
        patterns = (np.pad(patterns, (0, int(step))) + shifted) / 2
    far = abs(twice_rank[d > 0].sum() - twice_rank.sum() / 2)
    sums = np.arange(len(patterns))
    return min(1.0, math.fsum(patterns[np.abs(sums - twice_rank.sum() / 2) >= far]))
