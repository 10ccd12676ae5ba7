"""Cosine similarity to the released prototype of the candidate's class: the published baseline."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.membership._base import PrototypeAttack
from attacks.membership._groups import best_of_rounds, released
from privkit.clip import unit
from privkit.transcript import Records, ServerView


class Cosine(PrototypeAttack):
    """Mean over rounds of the cosine between a candidate's public embedding and its class's prototype.

    Of several prototypes of the class in a round, the most similar one counts.

    A weak attack: it ignores the noise level, the class mean and the covariance. It is here because
    published tables use it.
    """

    citation: ClassVar[str] = "vpdr"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="honest-but-curious server", knows=("the public encoder",), tier="public"
    )

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for rows, prototypes_Pd, starts_T in released(view, candidates):
            z_Nd = unit(candidates.vectors[rows])
            scores[rows] = best_of_rounds(z_Nd @ unit(prototypes_Pd).T, starts_T)
        return scores
