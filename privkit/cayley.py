"""Rotations by the Cayley transform: any matrix gives one, so they are trained without a constraint.

``Q = (I + R) (I - R)^{-1}`` of a skew ``R`` is a rotation: orthogonal, of determinant 1, without the eigenvalue -1.
``R`` has imaginary eigenvalues only, so ``I - R`` is never singular; nothing is ever inverted all the same.

Source: Cayley (1846), "Sur quelques proprietes des determinants gauches", in the form of FedOT, Section 3.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def skew(x: "Tensor") -> "Tensor":
    """Return ``(X - X^T) / 2`` of some matrices, shape [..., b, b]."""
    return (x - x.mT) / 2


def cayley(x: "Tensor") -> "Tensor":
    """Return the rotation that each of some matrices stands for, shape [..., b, b]; zeros give the identity."""
    import torch

    r, eye = skew(x), _identity_like(x)
    return torch.linalg.solve(eye - r, eye + r)


def rotate(x: "Tensor", h: "Tensor") -> "Tensor":
    """Return ``Q h`` of some rows, by a rotation in blocks.

    Of few rows, ``Q h = 2 z - h`` with ``(I - R) z = h``, and Q itself is never made; of more rows than a block is
    wide, making it is less work.

    Args:
        x: unconstrained matrices of r blocks, shape [..., r, b, b]; see :func:`cayley`.
        h: rows, shape [..., n, r * b]; the axes in front are those of ``x``.
    """
    import torch

    blocks, width = x.shape[-3], x.shape[-1]
    split = h.unflatten(-1, (blocks, width))
    if h.shape[-2] > width:
        return (split.transpose(-3, -2) @ cayley(x).mT).transpose(-3, -2).flatten(-2)
    columns = split.movedim(-3, -1)
    solved = torch.linalg.solve(_identity_like(x) - skew(x), columns)
    return (2 * solved - columns).movedim(-1, -3).flatten(-2)


def _identity_like(x: "Tensor") -> "Tensor":
    import torch

    return torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
