"""The barycenter of Gaussians by iteration, as FedUP prints it: on covariance matrices, and on their diagonals.

``S <- sum_i w_i (S^(1/2) Sigma_i S^(1/2))^(1/2)``, from the arithmetic mean on. Where matrices commute, the logarithm
of its error halves with every step.
"""

import numpy as np
from jaxtyping import Float64

STEPS = 60


def barycenter_by_iteration(
    covariance_Mdd: Float64[np.ndarray, "M d d"], weight_M: Float64[np.ndarray, " M"], *, steps: int = STEPS
) -> Float64[np.ndarray, "d d"]:
    """Return the covariance of the barycenter of Gaussians with any covariances, after so many steps."""
    s_dd = np.einsum("m,mij->ij", weight_M, covariance_Mdd)
    for _ in range(steps):
        root_dd = _root(s_dd)
        s_dd = np.einsum("m,mij->ij", weight_M, _root(root_dd @ covariance_Mdd @ root_dd))
    return s_dd


def diagonal_by_iteration(
    variance_Md: Float64[np.ndarray, "M d"], weight_M: Float64[np.ndarray, " M"], *, steps: int = STEPS
) -> Float64[np.ndarray, " d"]:
    """Return the variances of the barycenter of Gaussians with independent coordinates, after so many steps."""
    s_d = weight_M @ variance_Md
    for _ in range(steps):
        s_d = weight_M @ np.sqrt(s_d * variance_Md)
    return s_d


def _root(matrices: np.ndarray) -> np.ndarray:
    """Return the symmetric roots of symmetric matrices, which have no negative eigenvalue but by rounding."""
    values, vectors = np.linalg.eigh((matrices + np.swapaxes(matrices, -1, -2)) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
