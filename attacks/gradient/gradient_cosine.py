"""Cosine of the candidate's own gradient with the upload, over all trained maps together.

Source: Li, Li and Ribeiro (2023), "Effective passive membership inference attacks in federated learning against
overparameterized models": gradients of different records are nearly orthogonal, so a member's stands out.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.gradient._base import LABEL, GradientAttack, server
from attacks.gradient._inner import cosines
from attacks.gradient._seen import Seen


class GradientCosine(GradientAttack):
    """Cosine of a candidate's gradient with what its client sent, in [-1, 1]."""

    citation: ClassVar[str] = "li2023passive"
    threat: ClassVar[ThreatModel] = server(LABEL)
    family = "rival"

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        return cosines(seen.candidates, [seen.sent])[:, 0]
