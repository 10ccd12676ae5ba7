"""Would these tests have seen the noise being smaller than claimed? And how many trials would?"""

import math
from typing import Protocol, runtime_checkable

from scipy import special

from accountant import check
from accountant.tradeoff import GaussianCurve
from attacks.statistics.ceiling_power import auc_power, tpr_power
from attacks.statistics.residuals import scale_power
from attacks.statistics.search import first_enough


@runtime_checkable
class FaultPower(Protocol):
    """The power of a test to see that the noise is smaller than claimed."""

    def __call__(
        self, *, mu: float, n_members: int, n_non_members: int, significance: float, noise_ratio: float
    ) -> float:
        """Return a probability."""
        ...


def auc_fault_power(
    *, mu: float, n_members: int, n_non_members: int, significance: float = 0.001, noise_ratio: float = 0.5
) -> float:
    """Return the power of :func:`attacks.statistics.ceiling.auc_above` to see that the noise is too small.

    A canary that meets the claim exactly has AUC ``Phi(mu / sqrt 2)``, which is the ceiling; with
    ``noise_ratio`` times the noise it has mu / noise_ratio. The better test while mu is below about 2.

    Args:
        mu: claimed mu of everything the score has seen, > 0.
        n_members: independent trials with the canary, at least 2.
        n_non_members: independent trials without it, at least 2.
        significance: level of the test, in (0, 1).
        noise_ratio: true noise / claimed noise, in (0, 1); 0.5 is half of the noise missing.

    Returns:
        Probability in [0, 1], as exact as :func:`attacks.statistics.ceiling_power.auc_power`.

    >>> round(auc_fault_power(mu=0.5, n_members=200, n_non_members=200), 2)
    0.94
    """
    check.positive(mu=mu)
    check.open_unit(noise_ratio=noise_ratio)
    ceiling = float(special.ndtr(mu / math.sqrt(2)))
    if ceiling == 1:
        return 0.0
    return auc_power(
        auc=float(special.ndtr(mu / noise_ratio / math.sqrt(2))),
        ceiling=ceiling,
        n_members=n_members,
        n_non_members=n_non_members,
        significance=significance,
    )


def threshold_fault_power(
    *, mu: float, n_members: int, n_non_members: int, significance: float = 0.001, noise_ratio: float = 0.5
) -> float:
    """Return the power of :func:`attacks.statistics.ceiling.tpr_above` to see that the noise is too small.

    The threshold lies half-way between the two means, where the likelihood ratio is 1, and the claim is
    mu-GDP. Arguments as in :func:`auc_fault_power`; one trial per class is enough. Exact.

    >>> round(threshold_fault_power(mu=2.5, n_members=100, n_non_members=100), 2)
    0.96
    """
    check.positive(mu=mu)
    check.open_unit(noise_ratio=noise_ratio)
    half = mu / 2 / noise_ratio
    return tpr_power(
        tpr=float(special.ndtr(half)),
        fpr=float(special.ndtr(-half)),
        curve=GaussianCurve(mu=mu),
        n_members=n_members,
        n_non_members=n_non_members,
        significance=significance,
    )


def noise_fault_power(
    *, mu: float, n_members: int, n_non_members: int, significance: float = 0.001, noise_ratio: float = 0.5
) -> float:
    """Return the power of the better of the two tests, AUC or threshold; both must then be made.

    Arguments as in :func:`auc_fault_power`, which is the better one for every mu below 1.

    >>> round(noise_fault_power(mu=2.5, n_members=100, n_non_members=100), 2)
    0.96
    """
    tests = (auc_fault_power,) if mu < 1 else (auc_fault_power, threshold_fault_power)
    return max(
        test(
            mu=mu,
            n_members=n_members,
            n_non_members=n_non_members,
            significance=significance,
            noise_ratio=noise_ratio,
        )
        for test in tests
    )


def trials_for_power(
    *,
    mu: float,
    significance: float = 0.001,
    noise_ratio: float = 0.5,
    power: float = 0.9,
    test: FaultPower = noise_fault_power,
) -> int:
    """Return how many trials per class a test needs to see that the noise is smaller than claimed.

    Args:
        mu: claimed mu of everything the score has seen, > 0.
        significance: level of the test, in (0, 1).
        noise_ratio: true noise / claimed noise, in (0, 1).
        power: probability to reach, in (0, 1).
        test: :func:`noise_fault_power`, or one of the two it chooses from.

    Returns:
        Trials with the canary; as many again are needed without it.

    Raises:
        ValueError: more than a trillion would be needed.

    >>> trials_for_power(mu=0.5), trials_for_power(mu=2.5)
    (179, 94)
    """
    check.open_unit(power=power)

    def enough(n: int) -> bool:
        reached = test(
            mu=mu, n_members=n, n_non_members=n, significance=significance, noise_ratio=noise_ratio
        )
        return reached >= power

    return first_enough(enough, start=2)


def coordinates_for_power(*, noise_ratio: float, significance: float = 0.001, power: float = 0.99) -> int:
    """Return how many residual coordinates show that the noise is smaller than claimed.

    Args:
        noise_ratio: true standard deviation / claimed one, in (0, 1).
        significance: level of the chi-square test, in (0, 1).
        power: probability of seeing it, in (0, 1).

    Returns:
        The smallest number of coordinates with known clean value; with an unknown one, of coordinates times
        releases but one.

    >>> coordinates_for_power(noise_ratio=0.9), coordinates_for_power(noise_ratio=0.5)
    (1336, 34)
    """
    check.open_unit(noise_ratio=noise_ratio, power=power)
    return first_enough(lambda n: scale_power(n, significance=significance, ratio=noise_ratio) >= power)
