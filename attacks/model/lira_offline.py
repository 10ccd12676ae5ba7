"""LiRA with shadow models that have not seen the candidate: is its log-odds higher than such models give it?"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.model._base import WITH_RECORDS, Seen
from attacks.model._lira import Scale, Variance, gaussians, mean, offline, std
from attacks.model._shadows import ShadowAttack
from attacks.model._signals import rescaled_logits


class LiraOffline(ShadowAttack):
    """Log-odds of the candidate's class against those of heads trained on halves of the attacker's records.

    Carlini et al. train shadows as the target was. A client's head is trained for many rounds, from a mean of heads;
    with ``calibrated`` the attacker first maps its shadows' log-odds to the target's by a line through those of its own
    records, of which it knows that the target has none (ours). Rounds are averaged.
    """

    citation: ClassVar[str] = "carlini2022"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    variance: Variance = Field(
        default="pooled", description="of the log-odds over shadows: of each record by itself, or one for all"
    )
    calibrated: bool = Field(
        default=True, description="map shadows to the target by the attacker's own records"
    )

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        asked, owned = seen.candidates, seen.owned
        target_TNC = seen.logits(asked)
        made = self.heads(seen, num_classes=target_TNC.shape[-1])
        out_SN = rescaled_logits(made.logits(asked.vectors)[-1], asked.labels)
        own_SR = rescaled_logits(made.logits(owned.vectors)[-1], owned.labels)
        outs = gaussians(out_SN, (own_SR, ~made.held), self.variance)
        target_TN = rescaled_logits(target_TNC, asked.labels)
        if not self.calibrated:
            return np.stack([offline(target_N, outs) for target_N in target_TN])
        mean_R, typical = mean(own_SR, ~made.held), float(std(own_SR, ~made.held, pooled=True)[0])
        scales = [Scale.of(own_R, mean_R) for own_R in rescaled_logits(seen.logits(owned), owned.labels)]
        both = zip(target_TN, scales, strict=True)
        return np.stack(
            [offline(target_N, scale.of_target(outs, typical=typical)) for target_N, scale in both]
        )
