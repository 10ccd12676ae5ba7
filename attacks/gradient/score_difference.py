"""Score difference: how far the candidate's loss fell in the step after its round.

Source: Jagielski et al. (2023), "How to combine membership-inference attacks on multiple updated machine learning
models", Section 4: ScoreDiff.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.gradient._base import LABEL, server
from attacks.gradient._trajectory import StepAttack


class ScoreDifference(StepAttack):
    """Loss before the step minus loss after it."""

    citation: ClassVar[str] = "jagielski2023"
    threat: ClassVar[ThreatModel] = server(LABEL, "its weights after the round")
    family = "rival"

    def of_step(
        self, before_NT: Float64[np.ndarray, "N T"], after_NT: Float64[np.ndarray, "N T"]
    ) -> Float64[np.ndarray, "N T"]:
        return before_NT - after_NT
