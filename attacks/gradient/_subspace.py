"""The row space of one gradient, and how much of it means something."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attacks.gradient._pivoted import row_basis
from attacks.gradient._precision import Floor

_SMALL = 128
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
        gradient_md: finite; scaled by its largest number first, so that its length does not matter.
        floor: below which singular values mean nothing.
        rank: how many directions to keep instead, the largest; at most those that are not zero.

    Returns:
        Of rank 0 where the gradient is zero, or all noise.
    """
    width = gradient_md.shape[1]
    live_md = gradient_md[(gradient_md != 0).any(1)]
    if not len(live_md):
        return Subspace(basis=np.zeros((0, width)), rows=0)
    scale = float(np.abs(live_md).max())
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
    relative = Floor(max(m, d) * float(np.finfo(np.float32).eps))
    kept = floor.rank(values_K, shape=(m, d))
    if rank is not None:
        kept = min(rank, relative.rank(values_K, shape=(m, d)))
    leading = vectors[:, ::-1][:, :kept]
    if m > d:
        return np.ascontiguousarray(leading.T)
    # twice is enough: the first pass is orthonormal to eps (s_1 / s_k)^2
    return np.linalg.qr((leading.T @ live_md).T)[0].T
