r"""Column-space energy: do the candidate's slopes lie in the columns of the gradient?

Columns of :math:`G = \sum_t \delta_t z_t^T` lie in the span of the batch's slopes. With U an orthonormal basis of them,

.. math:: \text{score}(x, y) = \frac{\sum_t \|U^T \delta_t\|^2}{\sum_t \|\delta_t\|^2}

in [0, 1]. A map whose inputs are r numbers has at most r columns, so that m - r directions of slopes are left that
tell. A map with as many independent columns as outputs says nothing, nor does one of rank 0.

Source: the counterpart of ProjRes's argument (arXiv:2604.21197) on the other side of the map; ours.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.gradient._base import LABEL, LayerAttack, server
from attacks.gradient._fusion import Rule
from attacks.gradient._residual import TIE
from attacks.gradient._seen import Seen
from attacks.gradient._spaces import column_space


class ColumnEnergy(LayerAttack):
    """Share of the energy of a candidate's slopes that lies in the gradient's column space, by map."""

    citation: ClassVar[str] = "projres"
    threat: ClassVar[ThreatModel] = server(LABEL)
    family = "adaptive"

    layers: Rule = Field(
        default="mean", description="over maps: mean, largest score, top few, smallest, or the last"
    )

    def of_map(self, seen: Seen, name: str) -> Float64[np.ndarray, " N"] | None:
        found = column_space(seen, name)
        if not found.informative:
            return None
        slopes_NTm = seen.candidates.traces[name].slopes.astype(np.float64)
        outside_NTm = slopes_NTm - (slopes_NTm @ found.basis.T) @ found.basis
        whole_N, left_N = (np.einsum("ntm,ntm->n", x, x) for x in (slopes_NTm, outside_NTm))
        left_N = np.where(left_N > TIE**2 * whole_N, left_N, 0.0)
        return np.divide(whole_N - left_N, whole_N, out=np.zeros_like(whole_N), where=whole_N > 0)
