"""Was a planted record +v or -v? The worst case of replacement within a class, all rounds together.

The class's mean moves by ``2 min(|v|, R)/n`` between the two, the noise has a known standard deviation,
and within a class the canaries are orthogonal: the projection of the released prototype on each canary
is an independent test, whose likelihood ratio reaches the Gaussian mechanism's bound exactly.
"""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from accountant.contract import Relation
from accountant.events import leaves
from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import averaged
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
    asks_about: ClassVar[Literal["records", "canaries"]] = "canaries"

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        _refuse_other_relations(view)
        scores = np.zeros(len(candidates))
        for client, label, rows in by_client_and_class(candidates):
            release = averaged(view, client=client, label=label, drifts=False)
            v_Nd = candidates.vectors[rows].astype(np.float64)
            lengths = np.linalg.norm(v_Nd, axis=1)
            reach = np.minimum(lengths, release.clip_norm) / release.count
            projected = (v_Nd / lengths[:, None]) @ release.vector
            scale = release.std**2 if release.std > 0 else 1.0
            scores[rows] = 2.0 * reach * projected / scale
        return scores


def _refuse_other_relations(view: ServerView) -> None:
    """Raise if +v and -v are not neighbours under what some release claims."""
    for release in view.releases:
        for leaf, _ in leaves(release.event):
            if leaf.contract.relation not in (Relation.REPLACE_SAME_LABEL, Relation.REPLACE_ANY_LABEL):
                raise NotApplicableError(
                    f"a canary and its negation are no neighbours under {leaf.contract.relation.value!r}"
                )
