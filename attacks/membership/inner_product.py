"""Centred inner product: does the release lean towards the candidate, once the class's mean is taken off both?"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import ThreatModel
from attacks.membership._base import PrototypeAttack
from attacks.membership._groups import questions
from privkit.transcript import Records, ServerView


class InnerProduct(PrototypeAttack):
    """Inner product of candidate and release, each minus the class mean of records the attacker owns.

    What is left of tracing without whitening: it needs no covariance and no noise level. Several prototypes of a class
    are its mean again: without a scale, no cluster can be told from another.
    """

    citation: ClassVar[str] = "dwork2015"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="honest-but-curious server",
        knows=("the public encoder", "clip norm", "records of the same domain that no client holds"),
        tier="shadow",
    )

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for asked in questions(view, candidates):
            mean = asked.population.means[asked.label]
            scores[asked.rows] = (asked.candidates - mean) @ (asked.release.vector - mean)
        return scores
