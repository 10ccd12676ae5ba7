r"""Orthogonal Procrustes: the rotation that turns some vectors into others best, whole or in blocks on the diagonal.

.. math:: \hat Q = \arg\min_{Q \in SO(d)} \|A\,Q^T - B\|_F = U\,\mathrm{diag}(1, \dots, 1, \det(U V^T))\,V^T,
    \qquad B^T A = U \Sigma V^T

with raw vectors in the rows of A and turned ones in those of B. Blocks on the diagonal are turned apart from each
other, so each is a problem of its own. Rows of A that span less than the whole space leave the rest of a rotation open;
adding a multiple of the identity to :math:`B^T A` decides it for as little turning as there can be.

Source: Schönemann (1966), "A generalized solution of the orthogonal Procrustes problem"; Kabsch (1976), "A solution for
the best rotation to relate two sets of vectors", for the determinant.
"""

import numpy as np
from jaxtyping import Float64


def rotation_of(moment_rbb: Float64[np.ndarray, "r b b"]) -> Float64[np.ndarray, "r b b"]:
    """Return the rotation Q, block by block, with the largest ``tr(Q^T M)`` of a moment ``M = B^T A``.

    A moment of zeros says nothing, and gives the identity.
    """
    left_rbb, _, right_rbb = np.linalg.svd(moment_rbb)
    signs_rb = np.ones(moment_rbb.shape[:2])
    signs_rb[:, -1] = np.linalg.det(left_rbb @ right_rbb)
    found_rbb = (left_rbb * signs_rb[:, None]) @ right_rbb
    silent_r = np.logical_not(np.any(moment_rbb, axis=(1, 2)))
    return np.where(silent_r[:, None, None], np.eye(moment_rbb.shape[-1]), found_rbb)


def procrustes(
    raw_Kd: Float64[np.ndarray, "K d"],
    turned_Kd: Float64[np.ndarray, "K d"],
    *,
    blocks: int = 1,
    pull: float = 0.0,
) -> Float64[np.ndarray, "r b b"]:
    """Return the rotation that turns some rows into others best.

    Args:
        raw_Kd: finite rows.
        turned_Kd: what each became.
        blocks: of equal width on the diagonal, r; it divides d.
        pull: what is added to the diagonal of the moment, at least 0, in units of squared lengths: towards no turning.

    Returns:
        The blocks, each a rotation of determinant 1. Exact where the rows are exact and span d - 1 directions of each
        block or more.
    """
    return rotation_of(moment(raw_Kd, turned_Kd, blocks=blocks) + pull * np.eye(raw_Kd.shape[1] // blocks))


def moment(
    raw_Kd: Float64[np.ndarray, "K d"], turned_Kd: Float64[np.ndarray, "K d"], *, blocks: int
) -> Float64[np.ndarray, "r b b"]:
    """Return the blocks on the diagonal of ``B^T A``."""
    a_Krb, b_Krb = (x_Kd.reshape(len(x_Kd), blocks, -1) for x_Kd in (raw_Kd, turned_Kd))
    return np.einsum("krb,krc->rbc", b_Krb, a_Krb)


def turned(
    rotation_rbb: Float64[np.ndarray, "r b b"], vectors_Nd: Float64[np.ndarray, "N d"]
) -> Float64[np.ndarray, "N d"]:
    """Return ``Q h`` of some vectors."""
    split_Nrb = vectors_Nd.reshape(len(vectors_Nd), len(rotation_rbb), -1)
    return np.einsum("rbc,nrc->nrb", rotation_rbb, split_Nrb).reshape(vectors_Nd.shape)


def degrees_apart(one_rbb: Float64[np.ndarray, "r b b"], other_rbb: Float64[np.ndarray, "r b b"]) -> float:
    r"""Return by how many degrees two maps differ: :math:`\arccos(\mathrm{tr}(Q^T Q') / d)`, in [0, 180].

    The cosine is the mean of those between what the two make of d orthonormal vectors.
    """
    cosine = float((one_rbb * other_rbb).sum() / (one_rbb.shape[0] * one_rbb.shape[1]))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
