"""The row space of one gradient, and how much of it means something."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from scipy import linalg

from attacks.gradient._pivoted import row_basis
from attacks.gradient._precision import LOSSLESS, Floor

_SAFE = (1e-100, 1e100)
_SMALL = 256
"""Up to this many rows or columns every singular value is computed, which is exact and costs next to nothing."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Subspace:
    """The row space of a gradient of shape [m, d].

    Attributes:
        basis: orthonormal rows, shape [k, d].
        rows: m, without rows that are all zero.
    """

    basis: Float64[np.ndarray, "k d"]
    rows: int

    @property
    def rank(self) -> int:
        """Return k."""
        return len(self.basis)

    @property
    def width(self) -> int:
        """Return d."""
        return self.basis.shape[1]

    @property
    def saturation(self) -> float:
        """Return k / min(m, d) in [0, 1]: at 1 more tokens were summed than the gradient can tell apart."""
        most = min(self.rows, self.width)
        return self.rank / most if most else 0.0

    @property
    def informative(self) -> bool:
        """Return whether anything lies inside it and anything outside: else every record looks the same."""
        return 0 < self.rank < self.width


def subspace(gradient_md: Float64[np.ndarray, "m d"], floor: Floor, *, rank: int | None = None) -> Subspace:
    """Return the row space of a gradient; dead units, whose rows are zero, are left out.

    Args:
        gradient_md: finite, of any length.
        floor: below which singular values mean nothing.
        rank: how many directions to keep instead, the largest; at most those that are not zero.

    Returns:
        Of rank 0 where the gradient is zero, or all noise.
    """
    width = gradient_md.shape[1]
    live_m = np.abs(gradient_md).max(1, initial=0.0) > 0
    if not live_m.any():
        return Subspace(basis=np.zeros((0, width)), rows=0)
    live_md = gradient_md if live_m.all() else gradient_md[live_m]
    scale = float(np.abs(live_md).max())
    if _SAFE[0] < scale < _SAFE[1]:
        scale = 1.0
    else:
        live_md = live_md / scale
    if floor.lossless and rank is None and min(live_md.shape) > _SMALL:
        return Subspace(basis=row_basis(live_md, relative=floor.relative), rows=len(live_md))
    scaled = Floor(floor.relative, floor.absolute / scale, floor.by_median)
    return Subspace(basis=_by_singular_values(live_md, scaled, rank), rows=len(live_md))


def row_space_and_columns(gradient_md: Float64[np.ndarray, "m d"], floor: Floor) -> tuple[Subspace, Subspace]:
    """Return the row space of a gradient, and its column space (the row space of its transpose)."""
    return subspace(gradient_md, floor), subspace(np.ascontiguousarray(gradient_md.T), floor)


def _by_singular_values(
    live_md: Float64[np.ndarray, "m d"], floor: Floor, rank: int | None
) -> Float64[np.ndarray, "k d"]:
    """Return the leading right singular vectors, from the Gram matrix of the shorter side in float64."""
    m, d = live_md.shape
    gram = live_md @ live_md.T if m <= d else live_md.T @ live_md
    eigenvalues, vectors = np.linalg.eigh(gram)
    values_K = np.sqrt(np.maximum(eigenvalues[::-1], 0.0))
    kept = floor.rank(values_K, shape=(m, d))
    if rank is not None:
        kept = min(rank, Floor(LOSSLESS).rank(values_K, shape=(m, d)))
    leading = vectors[:, ::-1][:, :kept]
    if m > d:
        return np.ascontiguousarray(leading.T)
    # twice is enough: the first pass is orthonormal to eps (s_1 / s_k)^2
    return np.linalg.qr((leading.T @ live_md).T)[0].T


def leading_rows(rows_Nd: Float[np.ndarray, "N d"], *, rank: int) -> Float64[np.ndarray, "r d"]:
    """Return the leading right singular vectors of many rows: FISGuard's public subspace, for one.

    From part of the spectrum of the Gram matrix, in float64: a randomised method captures the energy where the spectrum
    decays slowly, but not the subspace.

    Args:
        rows_Nd: more rows than columns.
        rank: how many, at most d.

    Cost: ``N d^2`` and the tridiagonal form of a d x d matrix, instead of a decomposition of all rows.

    Source: arXiv:2608.27836, Step 1.
    """
    wide_Nd = rows_Nd.astype(np.float64)
    width = wide_Nd.shape[1]
    vectors_dr = linalg.eigh(wide_Nd.T @ wide_Nd, subset_by_index=(width - rank, width - 1))[1]
    return np.ascontiguousarray(vectors_dr[:, ::-1].T)
