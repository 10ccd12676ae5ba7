r"""Loss trajectory: not how large the loss is, but how it fell over training.

Liu et al. distil a model to guess how the loss of a record fell. In federated training nothing is to be guessed: every
round shows it. What members' trajectories look like is learned from shadow heads, whose losses at as many points of
their training are known for records with and without them. Ours: losses are taken on the scale of log-odds, where no
single one outweighs the rest, and standardised by those of records that were not in the model; a linear discriminant
stands in for their network, so that no draw decides a score.

Source: Liu, Zhao, Backes and Zhang (2022), "Membership inference attacks by exploiting loss trajectory".
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float64
from pydantic import Field

from attacks._base import NotApplicableError, ThreatModel
from attacks.membership._population import best_shrinkage, shrunk
from attacks.model._base import WITH_RECORDS, Seen
from attacks.model._shadows import ShadowAttack
from attacks.model._signals import rescaled_logits

_LEAST_ROUNDS = 2


class LossTrajectory(ShadowAttack):
    """Linear discriminant of the candidate's losses in all rounds, learned from shadow heads' trajectories."""

    citation: ClassVar[str] = "liu2022trajectory"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    epochs: int = Field(
        default=20, ge=1, description="passes of each over its records, at least one per round"
    )

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        asked, owned, rounds = seen.candidates, seen.owned, len(seen.models)
        if rounds < _LEAST_ROUNDS:
            raise NotApplicableError(
                f"{rounds} round of trained weights is no trajectory; at least 2 are needed"
            )
        target_TNC = seen.logits(asked)
        made = self.heads(seen, num_classes=target_TNC.shape[-1], points=rounds)
        shadow_TSR = rescaled_logits(made.logits(owned.vectors), owned.labels)
        direction_T = _direction(shadow_TSR, made.held)
        own_TR = rescaled_logits(seen.logits(owned), owned.labels)
        target_TN = rescaled_logits(target_TNC, asked.labels)
        standard_TN = (target_TN - own_TR.mean(1, keepdims=True)) / _std(own_TR)[:, None]
        return (direction_T @ standard_TN)[None]


def _direction(
    shadow_TSR: Float64[np.ndarray, "T S R"], held_SR: Bool[np.ndarray, "S R"]
) -> Float64[np.ndarray, " T"]:
    """Return the linear discriminant of standardised trajectories with and without the record."""
    outside_TK = shadow_TSR[:, ~held_SR]
    mean_T1, std_T1 = outside_TK.mean(1, keepdims=True), _std(outside_TK)[:, None]
    with_TK = (shadow_TSR[:, held_SR] - mean_T1) / std_T1
    without_TK = (outside_TK - mean_T1) / std_T1
    both = [part - part.mean(1, keepdims=True) for part in (with_TK, without_TK)]
    centred_KT = np.concatenate(both, axis=1).T
    covariance_TT = shrunk(centred_KT.T @ centred_KT / len(centred_KT), best_shrinkage(centred_KT))
    return np.linalg.solve(covariance_TT, with_TK.mean(1) - without_TK.mean(1))


def _std(values_TK: Float64[np.ndarray, "T K"]) -> Float64[np.ndarray, " T"]:
    return np.maximum(values_TK.std(1), 1e-12)
