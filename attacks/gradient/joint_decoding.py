r"""Joint decoding: which non-negative mixture of the candidates' own gradients is the upload?

.. math:: \min_{w \ge 0} \|B\, G - \sum_i w_i g_i\|^2

A record in the batch has weight 1, one outside weight 0, if the others of the batch are candidates too; what is not
asked about is error. Only inner products of candidates are needed, and no record of the attacker's own. Candidates of
one upload are decoded together, so their scores depend on each other.

Source: Lawson and Hanson (1974), "Solving least squares problems", Chapter 23 (NNLS); as an attack ours.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field
from scipy import linalg
from scipy.optimize import nnls

from attacks._base import ThreatModel
from attacks.gradient._base import BATCH, LABEL, NOISE, GradientAttack, server
from attacks.gradient._inner import clip_factors, rows_of
from attacks.gradient._seen import Seen

_STEPS = 30


class JointDecoding(GradientAttack):
    """Weight of a candidate's gradient in the non-negative mixture that comes closest to the upload."""

    citation: ClassVar[str] = "lawson1974"
    threat: ClassVar[ThreatModel] = server(LABEL, BATCH, NOISE)
    family = "adaptive"

    ridge: float = Field(
        default=1e-8,
        gt=0,
        lt=1,
        description="added to the squared length of each gradient, a share of it: equal candidates get equal weights",
    )

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        factor_N = clip_factors(seen.candidates, seen.noise.clip_norm)
        gram_NN, sent_N = np.zeros((len(factor_N), len(factor_N))), np.zeros(len(factor_N))
        for name, gradient_md in seen.sent.items():
            rows_Np = rows_of(seen.candidates.traces[name]) * factor_N[:, None]
            gram_NN += rows_Np @ rows_Np.T
            sent_N += rows_Np @ gradient_md.ravel()
        return mixture(gram_NN, seen.batch_size * sent_N, ridge=self.ridge)


def mixture(
    gram_NN: Float64[np.ndarray, "N N"], sent_N: Float64[np.ndarray, " N"], *, ridge: float
) -> Float64[np.ndarray, " N"]:
    """Return the non-negative weights that minimise ``w^T K w - 2 w^T c``; 0 for a record without a gradient.

    Args:
        gram_NN: K, inner products of candidates.
        sent_N: c, those with the sum that was sent.
        ridge: as a share of K's diagonal.
    """
    weights_N = np.zeros(len(sent_N))
    lengths_N = np.sqrt(np.diag(gram_NN))
    live = lengths_N > 0
    if not live.any():
        return weights_N
    unit_KK = gram_NN[np.ix_(live, live)] / np.outer(lengths_N[live], lengths_N[live])
    root_KK = np.linalg.cholesky(unit_KK + ridge * np.eye(len(unit_KK)))
    goal_K = linalg.solve_triangular(root_KK, sent_N[live] / lengths_N[live], lower=True)
    found_K, _ = nnls(root_KK.T, goal_K, maxiter=_STEPS * len(goal_K))
    weights_N[live] = found_K / lengths_N[live]
    return weights_N
