"""Minus the modified entropy of a candidate: an entropy that knows which class is the right one."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.model._base import SERVER, ModelAttack, Seen
from attacks.model._signals import modified_entropies


class ModifiedEntropy(ModelAttack):
    """Minus the modified entropy of the predicted distribution (Song and Mittal, 2021), averaged over rounds."""

    citation: ClassVar[str] = "song2021"
    threat: ClassVar[ThreatModel] = SERVER

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        return -modified_entropies(seen.logits(seen.candidates), seen.candidates.labels)
