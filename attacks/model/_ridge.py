r"""Ridge heads in closed form: what each would say of a record with it, and without it.

With ``A = X^T X + \lambda I`` of a shadow's records and ``h = x^T A^{-1} x``, one more record ``(x, y)`` turns the
output ``z`` at ``x`` into ``(z + h y) / (1 + h)``, and a record that is there leaves ``(z - h y) / (1 - h)``
(Sherman and Morrison). So one factorisation gives both outputs of every record, exactly.

Shapes: S shadows, R records they are trained on, N records asked about, d features (one constant), C classes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64
from scipy import linalg


@dataclass(frozen=True, eq=False)
class Pairs:
    """Outputs of every shadow for every record, the record being in its training set and not.

    Attributes:
        ins, outs: shape [S, N, C].
    """

    ins: Float64[np.ndarray, "S N C"]
    outs: Float64[np.ndarray, "S N C"]


def paired(
    x_Rd: Float[np.ndarray, "R d"],
    y_R: Int64[np.ndarray, " R"],
    held_SR: Bool[np.ndarray, "S R"],
    *,
    num_classes: int,
    penalty: float,
    asked: tuple[np.ndarray, np.ndarray] | None = None,
) -> Pairs:
    """Return both outputs of every ridge head on one-hot targets.

    Args:
        x_Rd: features, a constant among them where a bias is wanted.
        y_R: class of each record.
        held_SR: which shadow has which record.
        num_classes: of the heads.
        penalty: lambda, above 0.
        asked: features and classes of other records, which no shadow has; by default the R records are asked about.
    """
    target_RC = np.eye(num_classes)[y_R]
    x = x_Rd.astype(np.float64)
    query, labels = (x, y_R) if asked is None else (asked[0].astype(np.float64), asked[1])
    target_NC = np.eye(num_classes)[labels]
    ins, outs = [], []
    for held_R, gram_dd in zip(held_SR, _grams(x, held_SR), strict=True):
        factor = linalg.cholesky(gram_dd + penalty * np.eye(x.shape[1]), lower=True, overwrite_a=True)
        w_dC = linalg.cho_solve((factor, True), x[held_R].T @ target_RC[held_R])
        lever_N = np.square(linalg.solve_triangular(factor, query.T, lower=True)).sum(0)
        z_NC, own = query @ w_dC, lever_N[:, None] * target_NC
        has_N = held_R if asked is None else np.zeros(len(query), dtype=bool)
        h_N1 = lever_N[:, None]
        ins.append(np.where(has_N[:, None], z_NC, (z_NC + own) / (1 + h_N1)))
        # h < 1 for a record that is there, as lambda is above 0
        outs.append(np.where(has_N[:, None], (z_NC - own) / np.where(has_N[:, None], 1 - h_N1, 1.0), z_NC))
    return Pairs(np.stack(ins), np.stack(outs))


def _grams(
    x_Rd: Float64[np.ndarray, "R d"], held_SR: Bool[np.ndarray, "S R"]
) -> Iterator[Float64[np.ndarray, "d d"]]:
    """Yield ``X^T X`` of each shadow's records; that of a shadow with all the others is a subtraction."""
    total = x_Rd.T @ x_Rd
    before: tuple[np.ndarray, np.ndarray] | None = None
    for held_R in held_SR:
        if before is not None and np.array_equal(held_R, ~before[0]):
            yield total - before[1]
            before = None
        else:
            own = x_Rd[held_R]
            before = held_R, own.T @ own
            yield before[1].copy()
