"""Was a record that is only in the first round +v or -v? Told from the difference to later rounds.

Fresh noise makes the difference noisier than the first round alone. Noise that is used again drops out of it.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from attacks._averaged import Channel
from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import prototypes, refuse_other_payloads
from attacks.canary._moved import clipped
from attacks.canary.antipodal import refuse_other_relations
from attacks.membership._groups import by_client_and_class
from privkit.transcript import Records, ServerView


class OneRound(AbstractAttack):
    """Projection of the first round's prototype, minus the mean of the later ones, on the canary."""

    citation: ClassVar[str] = "nasr2023"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="auditor who planted the record",
        knows=(
            "the canary up to its sign, and that it was planted in the first round only",
            "clip and noise",
        ),
        tier="design",
    )
    asks_about: ClassVar[str] = "one_round"

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        refuse_other_payloads(view)
        refuse_other_relations(view)
        scores, channel = np.zeros(len(candidates)), Channel(view)
        for client, label, rows in by_client_and_class(candidates):
            released = view.prototypes(client=client, label=label)
            if len(released) < 2:
                raise NotApplicableError("a canary of one round needs a second round to be compared with")
            vectors_Td = np.array([prototypes(release).vectors[row] for release, row in released])
            first, _ = released[0]
            std_d = channel.groups(first).std_d
            scale_d = np.where(std_d > 0, std_d, 1.0) ** 2
            apart_d = vectors_Td[0] - vectors_Td[1:].mean(0, dtype=np.float64)
            reach_Nd = clipped(candidates.vectors[rows], channel.groups(first))
            scores[rows] = reach_Nd @ (apart_d / scale_d)
        return scores
