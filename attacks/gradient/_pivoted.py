"""An orthonormal basis of the row space of a large matrix, at the price of one Cholesky factor of its rank."""

import numpy as np
from jaxtyping import Float64
from scipy import linalg

_SPARE = 8
_FIRST = 32
_POWER_STEPS = 3
_WELL_CONDITIONED = 1e-3


def row_basis(gradient_md: Float64[np.ndarray, "m d"], *, relative: float) -> Float64[np.ndarray, "k d"]:
    """Return orthonormal rows that span those of a matrix, small directions left out.

    A sketch of few random combinations of rows is tried first, four times as many each time. Where the rank is above a
    fifth of the rows, the Gram matrix of all rows is factored. Both with pivots, so that the rank comes out of the
    factorisation: a row joins while what is left of it is longer than ``relative s_1``.

    Args:
        gradient_md: no row is zero.
        relative: singular values below this share of the largest are rounding, above 1e-7.

    Returns:
        Float64; orthonormal to about 1e-9.

    Cost: ``2 l m d`` for a sketch of l rows; else ``m^2 d + m^2 k + k^2 d`` in float64, which the precision needs: a
    float32 Gram matrix knows nothing below 3e-4 of the largest.

    Source: Halko, Martinsson and Tropp (2011), Algorithm 4.2 (sketch); Higham (2002), Section 10.3 (pivoted Cholesky).
    """
    m, d = gradient_md.shape
    if d < m:
        return _of_columns(gradient_md, relative=relative)
    rng = np.random.default_rng(0)  # any draw spans the same space
    sketch_ld = np.zeros((0, d))
    for rows in _sizes(m):
        more = rng.standard_normal((rows - len(sketch_ld), m)) / np.sqrt(m)
        sketch_ld = np.concatenate([sketch_ld, more @ gradient_md])
        basis_kd = _of_rows(sketch_ld, relative=relative)
        if len(basis_kd) <= rows - _SPARE:
            return basis_kd
    return _of_rows(gradient_md, relative=relative)


def _sizes(m: int) -> list[int]:
    """Return how many rows sketches have, each with those of the one before: 32, 128, ... up to a fifth of all."""
    most, sizes = m // 5, [_FIRST]
    while sizes[-1] * 4 <= most:
        sizes.append(sizes[-1] * 4)
    if most > 2 * sizes[-1]:
        sizes.append(most)
    return [rows for rows in sizes if rows <= most]


def _of_rows(rows_md: Float64[np.ndarray, "m d"], *, relative: float) -> Float64[np.ndarray, "k d"]:
    """Return a basis made of the rows that a pivoted Cholesky factor of their Gram matrix picks."""
    factor_mm, order_m, rank = _factor(rows_md @ rows_md.T, relative=relative)
    upper_kk = factor_mm[:rank, :rank]
    picked_kd = rows_md[order_m[:rank]]
    if not rank:
        return picked_kd
    (trsm,) = linalg.get_blas_funcs(("trsm",), (upper_kk, picked_kd))
    basis_kd = trsm(1.0, upper_kk, picked_kd.T, side=1, overwrite_b=1).T
    pivots_k = np.diag(upper_kk)
    if pivots_k[-1] < _WELL_CONDITIONED * pivots_k[0]:
        return np.linalg.qr(basis_kd.T)[0].T  # once is orthonormal to eps (first pivot / last)^2 only
    return basis_kd


def _of_columns(gradient_md: Float64[np.ndarray, "m d"], *, relative: float) -> Float64[np.ndarray, "k d"]:
    """Return a basis of the range of ``G^T G``, which is the row space of G, where G has fewer columns than rows."""
    factor_dd, order_d, rank = _factor(gradient_md.T @ gradient_md, relative=relative)
    range_dk = np.empty((len(order_d), rank))
    range_dk[order_d] = np.triu(factor_dd)[:rank].T
    return np.linalg.qr(range_dk)[0].T


def _factor(
    gram_nn: Float64[np.ndarray, "n n"], *, relative: float
) -> tuple[Float64[np.ndarray, "n n"], np.ndarray, int]:
    """Return R of ``P^T A P = R^T R`` in an upper triangle, the order of rows, and the rank."""
    least = relative**2 * _largest(gram_nn)
    (pstrf,) = linalg.get_lapack_funcs(("pstrf",), (gram_nn,))
    factor_nn, order_n, rank, _ = pstrf(gram_nn, tol=least, lower=0)
    return factor_nn, order_n - 1, int(rank)


def _largest(gram_nn: Float64[np.ndarray, "n n"]) -> float:
    """Return the largest eigenvalue, from below, roughly: it sets a scale only."""
    vector_n = gram_nn[int(np.argmax(np.diag(gram_nn)))]
    for _ in range(_POWER_STEPS):
        vector_n = gram_nn @ (vector_n / np.linalg.norm(vector_n))
    return float(np.linalg.norm(vector_n))
