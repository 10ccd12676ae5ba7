"""Distance to the released prototype of the candidate's class: a published baseline."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.membership._base import PrototypeAttack
from attacks.membership._groups import best_of_rounds, released
from privkit.transcript import Records, ServerView


class Distance(PrototypeAttack):
    """Minus the mean over rounds of the Euclidean distance of a candidate to its class's prototype.

    Of several prototypes of the class in a round, the nearest one counts.

    A weak attack: candidates far from the class's centre look like non-members whatever was released.
    """

    citation: ClassVar[str] = "vpdr"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="honest-but-curious server", knows=("the public encoder",), tier="public"
    )

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for rows, prototypes_Pd, starts_T in released(view, candidates):
            z_Nd = candidates.vectors[rows].astype(np.float64)
            gaps_NPd = z_Nd[:, None] - prototypes_Pd[None]
            # divided by a power of two first: no square overflows, and no bit changes
            unit_NP = np.frexp(np.abs(gaps_NPd).max(2))[1]
            squared_NP = (np.ldexp(gaps_NPd, -unit_NP[..., None]) ** 2).sum(2)
            scores[rows] = best_of_rounds(-np.ldexp(np.sqrt(squared_NP), unit_NP), starts_T)
        return scores
