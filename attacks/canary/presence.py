"""Is a planted record there at all? The worst case of adding or removing one, its class's size included."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from accountant.contract import Relation
from attacks._base import AbstractAttack, ThreatModel
from attacks._known_noise import refuse_other_payloads
from attacks.canary._moved import larger_by_one, refuse_unless
from privkit.canaries.presence import OTHERS
from privkit.transcript import Records, ServerView


class Presence(AbstractAttack):
    """Likelihood ratio of the record's class, all rounds together."""

    citation: ClassVar[str] = "nasr2023"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="auditor who planted the record",
        knows=("the canary and the records beside it, up to whether it is there", "clip and noise"),
        tier="design",
    )
    asks_about: ClassVar[str] = "presence"
    reaches_claim: ClassVar[bool] = True

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        refuse_other_payloads(view)
        refuse_unless(view, Relation.ADD_REMOVE)
        return larger_by_one(view, candidates, label=0, others=OTHERS)
