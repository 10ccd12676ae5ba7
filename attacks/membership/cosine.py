"""Cosine similarity to the released prototype of the candidate's class: the published baseline."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import AbstractAttack, ThreatModel
from attacks.membership._groups import released
from privkit.clip import unit
from privkit.transcript import Records, ServerView


class Cosine(AbstractAttack):
    """Mean over rounds of the cosine between a candidate's public embedding and its class's prototype.

    A weak attack: it ignores the noise level, the class mean and the covariance. It is here because
    published tables use it.
    """

    citation: ClassVar[str] = "vpdr"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="honest-but-curious server", knows=("the public encoder",), tier="public"
    )

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for rows, prototypes_Td in released(view, candidates):
            z_Nd = unit(candidates.vectors[rows])
            scores[rows] = (z_Nd @ unit(prototypes_Td).T).mean(1)
        return scores
