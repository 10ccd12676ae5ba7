"""Projection residuals as the code published with ProjRes is organised: one QR per candidate and map, in torch."""

from collections.abc import Sequence

import numpy as np


def residuals(gradients: Sequence[np.ndarray], inputs_LNd: np.ndarray) -> np.ndarray:
    """Return the residual of each candidate's unit input beside each map's rows, shape [L, N].

    The gradient is factored again for every candidate; its rows are taken to be independent. Where a dead unit makes
    the triangle singular, what comes out is not finite.
    """
    import torch

    found = np.empty(inputs_LNd.shape[:2])
    for candidate in range(inputs_LNd.shape[1]):
        for layer, gradient_md in enumerate(gradients):
            rows = torch.from_numpy(gradient_md)
            h = torch.from_numpy(inputs_LNd[layer, candidate])
            q, r = torch.linalg.qr(rows.T)
            coefficients = torch.linalg.solve_triangular(r, (q.T @ h)[:, None], upper=True)
            left = rows.T @ coefficients[:, 0] - h
            found[layer, candidate] = float(left.norm() / h.norm())
    return found
