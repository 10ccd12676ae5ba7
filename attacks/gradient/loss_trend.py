r"""Loss trend: how fast the model's confidence in the candidate grew over the rounds.

The slope of the least-squares line through the probabilities :math:`e^{-\ell_t}` of its label. No gradient is read.

Source: Chang, Edwards, Paul and Shokri (2024), "Efficient privacy auditing in federated learning": the slope signal.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import NotApplicableError, ThreatModel
from attacks.gradient._base import LABEL, server
from attacks.gradient._trajectory import TrajectoryAttack
from privkit.transcript import Records


class LossTrend(TrajectoryAttack):
    """Slope of the probability of the candidate's label over all rounds, per round."""

    citation: ClassVar[str] = "chang2024"
    threat: ClassVar[ThreatModel] = server(LABEL, "its weights of every round")
    family = "rival"

    def of_losses(
        self, losses_NR: Float64[np.ndarray, "N R"], candidates: Records
    ) -> Float64[np.ndarray, " N"]:
        points = losses_NR.shape[1]
        if points < 2:
            raise NotApplicableError("losses are known at one point only; a trend needs two")
        time_R = np.arange(points) - (points - 1) / 2
        return np.exp(-losses_NR) @ time_R / (time_R @ time_R)
