"""White-box check of the noise: residuals of repeated releases against the standard deviation claimed."""

import numpy as np
from jaxtyping import Float
from scipy import special

from accountant import check
from attacks.statistics.search import first_enough


def noise_p_value(releases_RD: Float[np.ndarray, "R D"], *, noise_std: float) -> float:
    """Return the one-sided p-value of "the noise is at least as large as claimed".

    Args:
        releases_RD: R releases of one and the same input, D coordinates each, in the unit of ``noise_std``.
        noise_std: claimed standard deviation per coordinate, > 0.

    Returns:
        Probability of residuals as small as these; chi-square with ``D (R - 1)`` degrees of freedom.

    Guarantees:
        Exact for independent Gaussian noise. Blind to noise that is reused, and to a missing clip.
    """
    check.positive(noise_std=noise_std)
    releases, coordinates = releases_RD.shape
    if releases < 2 or coordinates < 1 or not np.isfinite(releases_RD).all():
        raise ValueError(
            f"releases_RD has shape {releases_RD.shape}; give at least two finite releases of the same input."
        )
    residual_RD = (releases_RD - releases_RD.mean(axis=0)) / noise_std
    return _below(float((residual_RD**2).sum()), coordinates * (releases - 1))


def coordinates_to_detect(*, noise_ratio: float, significance: float = 0.001, power: float = 0.99) -> int:
    """Return how many residual coordinates show that the noise is smaller than claimed.

    Args:
        noise_ratio: true standard deviation / claimed one, in (0, 1).
        significance: level of the test, in (0, 1).
        power: probability of seeing it, in (0, 1).

    Returns:
        The smallest ``D (R - 1)``: coordinates times releases but one.

    >>> coordinates_to_detect(noise_ratio=0.9), coordinates_to_detect(noise_ratio=0.5)
    (1336, 34)
    """
    check.open_unit(noise_ratio=noise_ratio, significance=significance, power=power)

    def enough(n: int) -> bool:
        critical = 2 * special.gammaincinv(n / 2, significance)
        return bool(_below(critical / noise_ratio**2, n) >= power)

    return first_enough(enough)


def _below(squares: float, degrees: int) -> float:
    return float(special.gammainc(degrees / 2, squares / 2))
