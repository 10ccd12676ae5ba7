"""How much of a vector a row space leaves over."""

from typing import Literal

import numpy as np
from jaxtyping import Float, Float64

TIE = 1e-5
"""Residuals below this share of a vector's length are rounding errors, and all the same: 0."""


def residuals(
    vectors_Nd: Float[np.ndarray, "N d"], basis_kd: Float[np.ndarray, "k d"], *, order: Literal[1, 2] = 2
) -> Float64[np.ndarray, " N"]:
    r"""Return :math:`\|h - V^T V h\|_p` of each vector, rounding errors made 0.

    It is taken from the residual itself: :math:`\|h\|^2 - \|V h\|^2` knows nothing below 1e-3 of the length in float32.

    Args:
        vectors_Nd: any finite vectors, of length 0 as well.
        basis_kd: orthonormal rows.
        order: p, 1 or 2.

    Returns:
        In the units of the vectors, at least 0; exactly 0 where the euclidean residual is below ``TIE`` of the vector.

    Source: ProjRes, arXiv:2604.21197, as FISGuard (arXiv:2608.27836) writes it; Theorem VI.1 there says when it is 0.

    >>> residuals(np.array([[0.0, 1.0, -1.0, 0.0]]), np.array([[1.0, 0, 0, 0]]), order=1)
    array([2.])
    """
    left_Nd = vectors_Nd - (vectors_Nd @ basis_kd.T) @ basis_kd
    lengths_N = np.linalg.norm(vectors_Nd, axis=1).astype(np.float64)
    left_N = np.linalg.norm(left_Nd, axis=1).astype(np.float64)
    found_N = left_N if order == 2 else np.abs(left_Nd).sum(1).astype(np.float64)
    return np.where(left_N > TIE * lengths_N, found_N, 0.0)


def relative_residuals(
    vectors_Nd: Float[np.ndarray, "N d"], basis_kd: Float[np.ndarray, "k d"], *, order: Literal[1, 2] = 2
) -> Float64[np.ndarray, " N"]:
    """Return the residual of each vector scaled to length 1, in [0, 1]; that of a zero vector is 0.

    The l1 norm is divided by ``sqrt(d)``, its largest value, so that maps of different widths compare.
    """
    lengths_N = np.linalg.norm(vectors_Nd, axis=1).astype(np.float64)
    most_N = lengths_N * (np.sqrt(vectors_Nd.shape[1]) if order == 1 else 1.0)
    found_N = residuals(vectors_Nd, basis_kd, order=order)
    return np.divide(found_N, most_N, out=np.zeros_like(found_N), where=most_N > 0)
