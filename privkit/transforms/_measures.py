"""How far a map's matrix is from a rotation."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def orthogonality_errors(matrix_Grbb: "Tensor") -> "Tensor":
    """Return ``max |M^T M - I|`` of each client's matrix, from the blocks on its diagonal, shape [G]."""
    import torch

    eye = torch.eye(matrix_Grbb.shape[-1], dtype=matrix_Grbb.dtype, device=matrix_Grbb.device)
    return (matrix_Grbb.mT @ matrix_Grbb - eye).abs().amax((1, 2, 3))


def condition_numbers(matrix_Grbb: "Tensor") -> "Tensor":
    """Return the largest over the smallest singular value of each client's matrix, at least 1, shape [G]."""
    import torch

    values = torch.linalg.svdvals(matrix_Grbb).flatten(1)
    return values.amax(1) / values.amin(1)
