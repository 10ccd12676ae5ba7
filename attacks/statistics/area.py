"""The AUC with its variance, before anything is said about it: intervals and tests of one number."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from attacks.statistics.clusters import clustered_variance
from attacks.statistics.placements import placements, sorted_placements


@dataclass(frozen=True, kw_only=True)
class Area:
    """An AUC with its sampling variance.

    Attributes:
        value: the AUC, in [0, 1].
        variance: its variance; ``None`` where one independent unit per class cannot show any.
        degrees: degrees of freedom of the variance; infinite for independent records.
        n_members: independent units among the members (records, or clusters).
        n_non_members: independent units among the non-members.
        kind: how the variance was made, in words.
    """

    value: float
    variance: float | None
    degrees: float
    n_members: int
    n_non_members: int
    kind: str

    @property
    def degenerate(self) -> bool:
        """Return whether every pair agrees, so that the variance says nothing."""
        return self.value in (0.0, 1.0) or self.variance == 0

    @property
    def estimable(self) -> bool:
        """Return whether an interval exists."""
        return self.degenerate or self.variance is not None

    @property
    def standard_error(self) -> float:
        """Return the standard error, 0 where every pair agrees."""
        return 0.0 if self.degenerate or self.variance is None else math.sqrt(self.variance)

    def interval(self, *, level: float) -> tuple[float, float]:
        """Return the two-sided interval."""
        if self.degenerate:
            agree = self._agreement(1 - level)
            return self.value * agree, 1 - (1 - self.value) * agree
        reach = self._quantile((1 + level) / 2) * self._logit_error()
        centre = special.logit(self.value)
        return float(special.expit(centre - reach)), float(special.expit(centre + reach))

    def lower(self, *, level: float) -> float:
        """Return the one-sided lower limit."""
        if self.degenerate:
            return self.value * self._agreement(1 - level)
        reach = self._quantile(level) * self._logit_error()
        return float(special.expit(special.logit(self.value) - reach))

    def p_above(self, ceiling: float) -> float:
        """Return the one-sided p-value of "the true AUC is at most the ceiling"; inverts :meth:`lower`."""
        if ceiling == 1 or (self.degenerate and self.value <= ceiling):
            return 1.0
        if self.degenerate:
            return min(1.0, 2 * (ceiling / self.value) ** (1 / self._per_unit()))
        excess = float(special.logit(self.value) - special.logit(ceiling)) / self._logit_error()
        return float(_t_tail(excess, self.degrees))

    def _agreement(self, alpha: float) -> float:
        """Return a lower limit for the share of pairs that agree, given that all observed ones do.

        A member and a non-member each behave as seen with at least (alpha/2) ** (1/n): Clopper-Pearson, n of
        n. It holds although the threshold is read off the data: n disjoint pairs all agree with probability
        at most AUC ** n, so the exact limit alpha ** (1 / min(M, N)) is higher.
        """
        return float((alpha / 2) ** self._per_unit())

    def _per_unit(self) -> float:
        return 1 / self.n_members + 1 / self.n_non_members

    def _logit_error(self) -> float:
        return self.standard_error / (self.value * (1 - self.value))

    def _quantile(self, level: float) -> float:
        if math.isinf(self.degrees):
            return float(special.ndtri(level))
        return float(special.stdtrit(self.degrees, level))


def delong(member_M: Float[np.ndarray, " M"], non_member_N: Float[np.ndarray, " N"]) -> Area:
    """Return the AUC of independent records with the DeLong variance.

    Source: DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44, Eq. 5, with mid-rank placements.
    """
    # neither the AUC nor its variance sees the order
    value, v10_M, v01_N = sorted_placements(np.sort(member_M), np.sort(non_member_N))
    variance = None
    if min(len(v10_M), len(v01_N)) > 1:
        variance = float(v10_M.var(ddof=1) / len(v10_M) + v01_N.var(ddof=1) / len(v01_N))
    return Area(
        value=value,
        variance=variance,
        degrees=math.inf,
        n_members=len(member_M),
        n_non_members=len(non_member_N),
        kind="DeLong on the logit scale",
    )


def obuchowski(
    member_M: Float[np.ndarray, " M"],
    non_member_N: Float[np.ndarray, " N"],
    member_cluster_M: Int[np.ndarray, " M"],
    non_member_cluster_N: Int[np.ndarray, " N"],
) -> Area:
    """Return the AUC of clustered records; clusters are independent, records inside one are not.

    With a cluster per record this is DeLong's variance. The t distribution with one degree less than the
    smaller number of clusters keeps the interval honest for a handful of clusters.

    Source: Obuchowski (1997), Biometrics 53, p. 570.
    """
    value, v10_M, v01_N = placements(member_M, non_member_N)
    found = clustered_variance(
        (v10_M - value) / len(v10_M), (v01_N - value) / len(v01_N), member_cluster_M, non_member_cluster_N
    )
    return Area(
        value=value,
        variance=found.variance,
        degrees=float(found.degrees),
        n_members=found.with_member,
        n_non_members=found.with_non_member,
        kind=f"Obuchowski on the logit scale, t with {found.degrees} degrees of freedom",
    )


def _t_tail(excess: float, degrees: float) -> float:
    return special.ndtr(-excess) if math.isinf(degrees) else special.stdtr(degrees, -excess)
