r"""Gradient difference: does the upload get shorter when the candidate's gradient is taken out of it?

.. math::
    \text{score}(x) = \|\textstyle\sum_i g_i\|^2 - \|\sum_i g_i - g_x\|^2
    = 2 \langle \sum_i g_i, g_x \rangle - \|g_x\|^2

If gradients are orthogonal that is :math:`\|g_x\|^2` for a member and :math:`-\|g_x\|^2` for others. The sum is the
upload, a mean, times the size of the batch; a delta has another length, and no such sum. ``squared: false`` takes
lengths instead of squares, as the code that came with ProjRes does.

Source: Li, Li and Ribeiro (2023), "Effective passive membership inference attacks in federated learning against
overparameterized models": the gradient-difference attack.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import NotApplicableError, ThreatModel
from attacks.gradient._base import BATCH, LABEL, GradientAttack, server
from attacks.gradient._inner import inner, length, squares
from attacks.gradient._seen import Seen


class GradientDifference(GradientAttack):
    """Squared length of the batch's summed gradient, minus that without the candidate's."""

    citation: ClassVar[str] = "li2023passive"
    threat: ClassVar[ThreatModel] = server(LABEL, BATCH)
    family = "rival"

    squared: bool = Field(default=True, description="squares of lengths, as published; false: lengths")

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        if not seen.is_gradient:
            raise NotApplicableError(
                f"client {seen.release.client} sent a change of its weights, whose length is not that of a gradient"
            )
        gained_N = 2 * seen.batch_size * inner(seen.candidates, [seen.sent])[:, 0]
        gained_N -= squares(seen.candidates, seen.sent)
        if self.squared:
            return gained_N
        whole = seen.batch_size * length(seen.sent)
        return whole - np.sqrt(np.maximum(whole**2 - gained_N, 0.0))
