"""Right and wrong guesses at one threshold, and where that threshold came from."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from accountant import check
from attacks.statistics import binomial
from attacks.statistics.scores import as_scores


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Counts at one threshold: a candidate is called a member when its score is at least the threshold.

    Attributes:
        true_positives: members called members.
        n_members: members scored, at least 1.
        false_positives: non-members called members.
        n_non_members: non-members scored, at least 1.
        threshold: in the unit of the scores; ``None`` when nobody is called a member, or if not known.
        threshold_source: what it was chosen from, in words, such as "mu/2 of the claim" or "the other half".
            A limit on a rate holds only for a threshold that was fixed without looking at these scores.
    """

    true_positives: int
    n_members: int
    false_positives: int
    n_non_members: int
    threshold: float | None = None
    threshold_source: str

    def __post_init__(self) -> None:
        check.count(n_members=self.n_members, n_non_members=self.n_non_members)
        for name, hits, trials in (
            ("true_positives", self.true_positives, self.n_members),
            ("false_positives", self.false_positives, self.n_non_members),
        ):
            if not 0 <= hits <= trials or hits != int(hits):
                raise ValueError(f"{name}={hits} must be a whole number from 0 to {trials}.")
        if self.threshold is not None:
            check.finite(threshold=self.threshold)
        if not self.threshold_source:
            raise ValueError("threshold_source is empty; say in words what the threshold was chosen from.")

    @property
    def tpr(self) -> float:
        """Return the share of members called members."""
        return self.true_positives / self.n_members

    @property
    def fpr(self) -> float:
        """Return the share of non-members called members."""
        return self.false_positives / self.n_non_members

    def worst_rates(self, *, alpha: float) -> tuple[float, float]:
        """Return a lower limit for the TPR and an upper limit for the FPR that hold together.

        Args:
            alpha: probability that either of them fails; each rate gets half.

        Returns:
            Clopper-Pearson limits (TPR_low, FPR_up). The same pair bounds TNR from below and FNR from above.
        """
        check.open_unit(alpha=alpha)
        hits = np.array([self.true_positives])
        false = np.array([self.false_positives])
        return (
            float(binomial.lower_limits(hits, self.n_members, alpha=alpha / 2)[0]),
            float(binomial.upper_limits(false, self.n_non_members, alpha=alpha / 2)[0]),
        )

    def __str__(self) -> str:
        """Return the counts as a table shows them."""
        return f"TP {self.true_positives}/{self.n_members}, FP {self.false_positives}/{self.n_non_members}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)


def confusion(
    members: ArrayLike, non_members: ArrayLike, *, threshold: float, threshold_source: str
) -> Confusion:
    """Return the counts at a threshold: who scores at least that much is called a member.

    Args:
        members: scores of members, at least one.
        non_members: scores of non-members, at least one.
        threshold: in the unit of the scores; infinity calls nobody a member.
        threshold_source: what the threshold was chosen from, in words.

    >>> str(confusion([3, 2, 1], [2, 0], threshold=2.0, threshold_source="the claim"))
    'TP 2/3, FP 1/2'
    """
    if math.isnan(threshold):
        raise ValueError("threshold is NaN; give a number in the unit of the scores.")
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    return Confusion(
        true_positives=int(np.count_nonzero(member_M >= threshold)),
        n_members=len(member_M),
        false_positives=int(np.count_nonzero(non_member_N >= threshold)),
        n_non_members=len(non_member_N),
        threshold=float(threshold) if math.isfinite(threshold) else None,
        threshold_source=threshold_source,
    )
