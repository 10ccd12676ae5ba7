"""Minus the loss of a candidate at the weights that the server sent out: the baseline that reads no gradient.

Source: Yeom et al. (2018), "Privacy risk in machine learning".
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import NotApplicableError, ThreatModel
from attacks.gradient._base import LABEL, GradientAttack, server
from attacks.gradient._seen import Seen


class CandidateLoss(GradientAttack):
    """Minus the candidate's own loss; records that any model finds easy look like members."""

    citation: ClassVar[str] = "yeom2018"
    threat: ClassVar[ThreatModel] = server(LABEL)
    family = "rival"

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        if not np.isfinite(seen.candidates.losses).all():
            raise NotApplicableError("a loss of a candidate is not finite; leave out models that diverged")
        return -seen.candidates.losses
