"""Cosine similarity to the released prototype of the candidate's class: the published baseline."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import prototypes
from attacks.membership._groups import by_client_and_class
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
        for client, label, rows in by_client_and_class(candidates):
            found = view.prototypes(client=client, label=label)
            if not found:
                raise NotApplicableError(f"client {client} released no prototype of class {label}")
            vectors = [prototypes(release).vectors[row] for release, row in found]
            prototypes_Td = unit(np.array(vectors))
            z_Nd = unit(candidates.vectors[rows])
            scores[rows] = (z_Nd @ prototypes_Td.T).mean(1)
        return scores
