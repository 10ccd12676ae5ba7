"""Score ratio: by which factor the candidate's loss fell in the step after its round.

Source: Jagielski et al. (2023), "How to combine membership-inference attacks on multiple updated machine learning
models", Section 4: ScoreRatio. The constant 1e-4 is that of the code that came with ProjRes.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.gradient._base import LABEL, server
from attacks.gradient._trajectory import StepAttack

_CONSTANT = 1e-4


class ScoreRatio(StepAttack):
    """Minus the loss after the step over that before it, 1e-4 added to both."""

    citation: ClassVar[str] = "jagielski2023"
    threat: ClassVar[ThreatModel] = server(LABEL, "its weights after the round")
    family = "rival"

    def of_step(
        self, before_NT: Float64[np.ndarray, "N T"], after_NT: Float64[np.ndarray, "N T"]
    ) -> Float64[np.ndarray, "N T"]:
        return -(after_NT + _CONSTANT) / (before_NT + _CONSTANT)
