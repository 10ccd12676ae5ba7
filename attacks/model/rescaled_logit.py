"""The rescaled logit of a candidate: log-odds of its own class."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.model._base import SERVER, ModelAttack, Seen
from attacks.model._signals import hinges, rescaled_logits


class RescaledLogit(ModelAttack):
    """Log-odds of the candidate's class, averaged over rounds: the statistic of LiRA, without its shadow models.

    In one round it orders candidates as the loss does; over rounds no single confident one outweighs the others.
    """

    citation: ClassVar[str] = "carlini2022"
    threat: ClassVar[ThreatModel] = SERVER

    hinge: bool = Field(
        default=False, description="take the largest other logit instead of all others together"
    )

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        statistic = hinges if self.hinge else rescaled_logits
        return statistic(seen.logits(seen.candidates), seen.candidates.labels)
