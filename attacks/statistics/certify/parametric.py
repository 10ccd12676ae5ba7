"""Epsilon from normal scores: the distance between two means, in standard deviations."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special

from accountant import check
from attacks.statistics.certify.certificate import Certificate, epsilon_or_zero
from attacks.statistics.certify.clopper_pearson import INDEPENDENT_TRIALS
from attacks.statistics.certify.gdp import GAUSSIAN_CURVE
from attacks.statistics.estimate import empty_class
from attacks.statistics.scores import as_scores

METHOD = "normal scores"


def epsilon_parametric(
    members: ArrayLike,
    non_members: ArrayLike,
    *,
    delta: float,
    level: float = 0.95,
    noise_std: float | None = None,
) -> Certificate:
    r"""Return the mu, and its epsilon, that the distance between normal scores rules out.

    .. math:: \hat\mu = \frac{\bar m - \bar o}{s} - z_{level} \sqrt{1/M + 1/N}

    With ``noise_std=None`` the standard deviation is estimated from both classes: ``s`` is then its upper
    chi-square limit, and each of the two limits gets half of the error.

    Args:
        members: scores with the canary, at least one.
        non_members: scores without it, at least one; three in all if ``noise_std`` is not given.
        delta: in (0, 1).
        level: probability that the limit holds, in (0, 1).
        noise_std: known standard deviation of the scores, in their unit. A wrong one makes a wrong
            certificate; taken from the claim, it hides noise that is smaller than claimed.

    Raises:
        ValueError: a class is empty, or there are fewer than three scores to estimate a deviation from.

    Source: two-sample z limit for a standardised mean difference.

    >>> cert = epsilon_parametric([1.5, 2.5], [0.0, 1.0], delta=1e-5, noise_std=0.5)
    >>> round(cert.mu_low, 6)
    1.355146
    """
    check.open_unit(level=level)
    member_M = as_scores(members, name="members")
    non_member_N = as_scores(non_members, name="non_members")
    reason = empty_class(len(member_M), len(non_member_N))
    if reason:
        raise ValueError(f"there is no distance with {reason}; give scores of both classes.")
    distance = float(member_M.mean() - non_member_N.mean())
    error = np.sqrt(1 / len(member_M) + 1 / len(non_member_N))
    if noise_std is None:
        doubt = (1 - level) / 2
        std, known = _upper_std(member_M, non_member_N, alpha=doubt), "estimated from the scores"
    else:
        check.positive(noise_std=noise_std)
        doubt, std, known = 1 - level, noise_std, f"known to be {noise_std:g}"
    mu_low = max(0.0, float(distance / std + special.ndtri(doubt) * error))
    return Certificate(
        method=METHOD,
        epsilon_low=epsilon_or_zero(mu_low, delta=delta),
        mu_low=mu_low,
        delta=delta,
        level=level,
        assumptions=(
            INDEPENDENT_TRIALS,
            f"scores of both classes are normal with one standard deviation, {known}",
            GAUSSIAN_CURVE,
        ),
        threshold_source="",
        evidence=f"{len(member_M)} members, {len(non_member_N)} non-members, mean distance {distance:g}",
    )


def _upper_std(
    member_M: Float[np.ndarray, " M"], non_member_N: Float[np.ndarray, " N"], *, alpha: float
) -> float:
    """Return the upper limit of the common standard deviation that fails with probability alpha."""
    degrees = len(member_M) + len(non_member_N) - 2
    squares = float(
        ((member_M - member_M.mean()) ** 2).sum() + ((non_member_N - non_member_N.mean()) ** 2).sum()
    )
    if degrees < 1 or squares == 0:
        raise ValueError(
            f"{degrees + 2} scores with sum of squares {squares:g} around their means show no standard "
            "deviation; give more scores, or noise_std if it is known."
        )
    return float(np.sqrt(squares / (2 * special.gammaincinv(degrees / 2, alpha))))
