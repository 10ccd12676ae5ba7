"""Minus the entropy of the prediction for a candidate: needs no label."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.model._base import SERVER, ModelAttack, Seen
from attacks.model._signals import entropies


class Entropy(ModelAttack):
    """Minus the entropy of the predicted distribution, averaged over rounds.

    A weak attack: a wrong prediction that is sure of itself looks like that of a member.
    """

    citation: ClassVar[str] = "song2021"
    threat: ClassVar[ThreatModel] = SERVER

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        return -entropies(seen.logits(seen.candidates))
