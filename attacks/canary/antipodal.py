"""Was a planted record +v or -v? The worst case of replacement within a class, all rounds together.

The class's mean moves by ``2 min(|v|, R)/n`` between the two, the noise has a known standard deviation,
and within a class the canaries are orthogonal: the projection of the released prototype on each canary
is an independent test, whose likelihood ratio reaches the Gaussian mechanism's bound exactly.
"""

from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from attacks._base import AbstractAttack, ThreatModel
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
