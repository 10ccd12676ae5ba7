r"""One Gaussian for several: the 2-Wasserstein barycenter of diagonal Gaussians, and what else is taken for one.

All have the weighted mean of means. Between diagonal Gaussians the squared distance is
``|mu_i - mu_j|^2 + |sigma_i - sigma_j|^2``, that of points ``(mu, sigma)``; so the barycenter's standard deviation is
the weighted mean of standard deviations, in closed form. FedUP prints a fixed-point iteration for it,
``S <- sum_i w_i (S^(1/2) Sigma_i S^(1/2))^(1/2)``, which converges to the same by a factor of 2 per step.

Source: FedUP, Eq. 19; Agueh and Carlier (2011), "Barycenters in the Wasserstein space", Section 6.1
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64


class Gaussian(NamedTuple):
    """A Gaussian with independent coordinates.

    Attributes:
        mean: shape [d].
        spread: standard deviation of each coordinate, at least 0, shape [d].
    """

    mean: Float64[np.ndarray, " d"]
    spread: Float64[np.ndarray, " d"]


def wasserstein(
    mean_Md: Float64[np.ndarray, "M d"],
    spread_Md: Float64[np.ndarray, "M d"],
    weight_M: Float64[np.ndarray, " M"],
) -> Gaussian:
    """Return the Gaussian whose weighted squared 2-Wasserstein distances to some others add up to the least.

    Args:
        mean_Md: their means.
        spread_Md: their standard deviations.
        weight_M: at least 0, adding up to 1.

    >>> wasserstein(np.array([[0.0], [4.0]]), np.array([[1.0], [3.0]]), np.array([0.5, 0.5]))
    Gaussian(mean=array([2.]), spread=array([2.]))
    """
    return Gaussian(weight_M @ mean_Md, weight_M @ spread_Md)


def mixture(
    mean_Md: Float64[np.ndarray, "M d"],
    spread_Md: Float64[np.ndarray, "M d"],
    weight_M: Float64[np.ndarray, " M"],
) -> Gaussian:
    """Return the Gaussian with mean and variances of the weighted mixture of some; see :func:`wasserstein`.

    Its spread alone counts how far the means lie apart.

    >>> mixture(np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]]), np.array([0.5, 0.5])).spread ** 2
    array([5.])
    """
    mean_d = weight_M @ mean_Md
    return Gaussian(mean_d, np.sqrt(weight_M @ (spread_Md**2 + (mean_Md - mean_d) ** 2)))


def independent(
    mean_Md: Float64[np.ndarray, "M d"],
    spread_Md: Float64[np.ndarray, "M d"],
    weight_M: Float64[np.ndarray, " M"],
) -> Gaussian:
    """Return the distribution of the weighted mean of independent draws, one from each; see :func:`wasserstein`.

    What FedUP calls the naive average: its variance shrinks as the number of Gaussians grows.

    >>> independent(np.array([[0.0], [4.0]]), np.array([[1.0], [1.0]]), np.array([0.5, 0.5])).spread ** 2
    array([0.5])
    """
    return Gaussian(weight_M @ mean_Md, np.sqrt(weight_M**2 @ spread_Md**2))


BARYCENTERS = {"wasserstein": wasserstein, "mixture": mixture, "independent": independent}
"""By the name of a setting."""
