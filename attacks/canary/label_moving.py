"""Is a planted record in the one class or in the other? The worst case of replacing one by another of any label."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from accountant.contract import Relation
from attacks._base import AbstractAttack, ThreatModel
from attacks._known_noise import refuse_other_payloads
from attacks.canary._moved import larger_by_one, refuse_unless
from privkit.canaries.label_moving import OTHERS
from privkit.transcript import Records, ServerView


class LabelMoving(AbstractAttack):
    """Likelihood ratio of both classes, all rounds together."""

    citation: ClassVar[str] = "nasr2023"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="auditor who planted the record",
        knows=("the canary and the records beside it, up to its class", "clip and noise"),
        tier="design",
    )
    asks_about: ClassVar[str] = "label_moving"
    reaches_claim: ClassVar[bool] = True

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        refuse_other_payloads(view)
        refuse_unless(view, Relation.REPLACE_ANY_LABEL)
        first, second = (larger_by_one(view, candidates, label=i, others=OTHERS) for i in (0, 1))
        return first - second
