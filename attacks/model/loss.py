"""Minus the loss of a candidate: the oldest attack, and the baseline of all others."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.model._base import SERVER, ModelAttack, Seen
from attacks.model._signals import losses


class Loss(ModelAttack):
    """Minus the cross-entropy of the candidate under the client's model, averaged over rounds.

    Records that any model finds easy look like members.
    """

    citation: ClassVar[str] = "yeom2018"
    threat: ClassVar[ThreatModel] = SERVER

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        return -losses(seen.logits(seen.candidates), seen.candidates.labels)
