"""Power: would these tests have seen the noise being smaller than claimed?"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from accountant import check
from attacks.statistics.binomial import lower_limits, upper_limits
from attacks.statistics.ceiling import TradeOffCurve
from attacks.statistics.search import first_enough

_FEW_PAIRS = 10  # expected disagreeing pairs below which a normal law for the AUC is no longer one


class FaultPower(Protocol):
    """The power of one test to see that the noise is smaller than claimed."""

    def __call__(
        self, *, mu: float, n_members: int, n_non_members: int, significance: float, noise_ratio: float
    ) -> float:
        """Return a probability."""
        ...


def auc_fault_power(
    *,
    mu: float,
    n_members: int,
    n_non_members: int,
    significance: float = 0.001,
    noise_ratio: float = 0.5,
) -> float:
    """Return the power of :func:`attacks.statistics.ceiling.auc_above` to see that the noise is too small.

    A canary that meets the claim exactly has AUC ``Phi(mu / sqrt 2)``, which is the ceiling; with ``noise_ratio``
    times the noise it has mu / noise_ratio. The better test while mu is below about 1.5.

    Args:
        mu: claimed mu of everything the score has seen, > 0.
        n_members: independent trials with the canary, at least 2.
        n_non_members: independent trials without it, at least 2.
        significance: level of the test, in (0, 1).
        noise_ratio: true noise / claimed noise, in (0, 1); 0.5 is half of the noise missing.

    Returns:
        Probability in [0, 1], to about 0.04; too low where few pairs disagree (mu above 1.5).

    >>> round(auc_fault_power(mu=0.5, n_members=200, n_non_members=200), 2)
    0.92
    """
    check.positive(mu=mu)
    check.open_unit(noise_ratio=noise_ratio)
    return auc_power(
        auc=float(special.ndtr(mu / noise_ratio / math.sqrt(2))),
        ceiling=float(special.ndtr(mu / math.sqrt(2))),
        n_members=n_members,
        n_non_members=n_non_members,
        significance=significance,
    )


def threshold_fault_power(
    *,
    mu: float,
    n_members: int,
    n_non_members: int,
    significance: float = 0.001,
    noise_ratio: float = 0.5,
) -> float:
    """Return the power of :func:`attacks.statistics.ceiling.tpr_above` to see that the noise is too small.

    The threshold lies half-way between the two means, ``mu / 2`` in units of the claimed noise, and the claim is
    mu-GDP. Arguments as in :func:`auc_fault_power`, one trial per class is enough. Exact.

    >>> round(threshold_fault_power(mu=2.5, n_members=100, n_non_members=100), 2)
    0.93
    """
    check.positive(mu=mu)
    check.open_unit(noise_ratio=noise_ratio)
    right = float(special.ndtr(mu / 2 / noise_ratio))
    return tpr_power(
        tpr=right,
        fpr=1 - right,
        curve=_Gaussian(mu),
        n_members=n_members,
        n_non_members=n_non_members,
        significance=significance,
    )


def trials_for_power(
    *,
    mu: float,
    significance: float = 0.001,
    noise_ratio: float = 0.5,
    power: float = 0.9,
    test: FaultPower = auc_fault_power,
) -> int:
    """Return how many trials per class a test needs to see that the noise is smaller than claimed.

    Args:
        mu: claimed mu of everything the score has seen, > 0.
        significance: level of the test, in (0, 1).
        noise_ratio: true noise / claimed noise, in (0, 1).
        power: probability to reach, in (0, 1).
        test: :func:`auc_fault_power` or :func:`threshold_fault_power`.

    Returns:
        Trials with the canary; as many again are needed without it.

    Raises:
        ValueError: more than a trillion would be needed.

    >>> trials_for_power(mu=0.5), trials_for_power(mu=2.5, test=threshold_fault_power)
    (187, 94)
    """
    check.open_unit(power=power)

    def enough(n: int) -> bool:
        reached = test(
            mu=mu, n_members=n, n_non_members=n, significance=significance, noise_ratio=noise_ratio
        )
        return reached >= power

    return first_enough(enough, start=2)


def auc_power(
    *, auc: float, ceiling: float, n_members: int, n_non_members: int, significance: float
) -> float:
    """Return the power of the AUC test against a ceiling, for normal scores of equal variance.

    Args:
        auc: the true AUC, in [0.5, 1].
        ceiling: what the claim allows, in (0, 1).
        n_members: independent trials with the canary, at least 2.
        n_non_members: independent trials without it, at least 2.
        significance: level of the test, in (0, 1).

    Returns:
        Probability in [0, 1]: normal on the logit scale with the exact variance of the AUC; where fewer than ten
        pairs are expected to disagree, whether full separation would be significant.

    Source: variance as in Bamber (1975), Eq. 2.
    """
    check.open_unit(ceiling=ceiling, significance=significance)
    if min(n_members, n_non_members) < 2 or not 0.5 <= auc <= 1:
        raise ValueError(
            f"auc={auc}, n_members={n_members}, n_non_members={n_non_members}: "
            "the AUC must be 0.5 to 1, with at least 2 trials per class."
        )
    pairs = n_members * n_non_members
    if pairs * (1 - auc) < _FEW_PAIRS:
        separated = 2 * ceiling ** (pairs / (n_members + n_non_members))
        return float(separated <= significance)
    error = math.sqrt(_binormal_variance(auc, n_members, n_non_members)) / (auc * (1 - auc))
    excess = float(special.logit(auc) - special.logit(ceiling)) / error
    return float(special.ndtr(excess + special.ndtri(significance)))


def tpr_power(
    *,
    tpr: float,
    fpr: float,
    curve: TradeOffCurve,
    n_members: int,
    n_non_members: int,
    significance: float,
) -> float:
    """Return the exact power of :func:`attacks.statistics.ceiling.tpr_above` when the true rates are known.

    Args:
        tpr: true rate at the threshold with the canary, in [0, 1].
        fpr: true rate at the threshold without it, in [0, 1].
        curve: what the claim allows.
        n_members: independent trials with the canary, at least 1.
        n_non_members: independent trials without it, at least 1.
        significance: level of the test, in (0, 1).

    Returns:
        Probability in [0, 1]: a sum over all false-positive counts of the chance of enough true positives.
    """
    check.closed_unit(tpr=tpr, fpr=fpr)
    check.open_unit(significance=significance)
    check.count(n_members=n_members, n_non_members=n_non_members)
    false = np.arange(n_non_members + 1)
    fpr_up = upper_limits(false, n_non_members, alpha=significance / 2)
    allowed = np.array([float(curve.tpr(float(rate))) for rate in fpr_up])
    tpr_low = lower_limits(np.arange(n_members + 1), n_members, alpha=significance / 2)
    needed = np.searchsorted(tpr_low, allowed, side="right")
    reached = np.where(
        needed > n_members, 0.0, special.bdtrc(np.minimum(needed, n_members) - 1.0, n_members, tpr)
    )
    reached = np.where(needed == 0, 1.0, reached)
    below = np.diff(special.bdtr(false.astype(float), n_non_members, fpr), prepend=0.0)
    return float(min(1.0, below @ reached))


def _binormal_variance(auc: float, m: int, n: int) -> float:
    """Return the variance of the AUC of M and N normal scores of equal variance."""
    h = special.ndtri(auc)
    # two members above one non-member, or one member above two non-members: two normals correlated by 1/2
    both = auc - 2 * special.owens_t(h, 1 / math.sqrt(3))
    return float((auc * (1 - auc) + (m + n - 2) * (both - auc * auc)) / (m * n))


@dataclass(frozen=True)
class _Gaussian:
    """The trade-off curve of mu-GDP."""

    mu: float

    def tpr(self, fpr: float, /) -> float:
        return float(special.ndtr(special.ndtri(fpr) + self.mu))
