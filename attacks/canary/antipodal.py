"""Was a planted record +v or -v? The worst case of replacement within a class, all rounds together.

The class's mean moves by ``2 clip(v)/n`` between the two and the noise has a known covariance. Under isotropic
noise the canaries of a class are orthogonal: the projection of the released prototype on each is an
independent test, whose likelihood ratio reaches the Gaussian mechanism's bound exactly. Under noise that differs
by group they are orthogonal only nearly, so a few canaries per class come closest to it.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from accountant.contract import Relation
from accountant.events import leaves
from attacks._averaged import Channel
from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import refuse_other_payloads
from attacks.membership._groups import by_client_and_class
from privkit.transcript import Records, ServerView


class Antipodal(AbstractAttack):
    """Likelihood ratio of a canary planted as it stands against its negation."""

    citation: ClassVar[str] = "nasr2023"
    threat: ClassVar[ThreatModel] = ThreatModel(
        who="auditor who planted the record",
        knows=("the canary up to its sign", "clip norm, noise multiplier and record counts"),
        tier="design",
    )
    asks_about: ClassVar[str] = "canaries"
    reaches_claim: ClassVar[bool] = True

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        refuse_other_payloads(view)
        refuse_other_relations(view)
        scores, channel = np.zeros(len(candidates)), Channel(view)
        for client, label, rows in by_client_and_class(candidates):
            release = channel.averaged(client=client, label=label, drifts=False)
            reach_Nd = release.clip(candidates.vectors[rows]) / release.count
            scale_d = np.where(release.variance > 0, release.variance, 1.0)
            scores[rows] = 2.0 * reach_Nd @ (release.vector / scale_d)
        return scores


def refuse_other_relations(view: ServerView) -> None:
    """Raise if +v and -v are not neighbours under what some release claims."""
    for release in view.releases:
        for leaf, _ in leaves(release.event):
            if leaf.contract.relation not in (Relation.REPLACE_SAME_LABEL, Relation.REPLACE_ANY_LABEL):
                raise NotApplicableError(
                    f"a canary and its negation are no neighbours under {leaf.contract.relation.value!r}"
                )
