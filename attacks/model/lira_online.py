"""LiRA with shadow models that have seen the candidate and the same models without it, in closed form."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.model._base import WITH_RECORDS, ModelAttack, Seen
from attacks.model._lira import Gaussians, Scale, Variance, gaussians, mean, online, std
from attacks.model._ridge import Pairs
from attacks.model._shadows import ridge_pairs
from attacks.model._signals import hinges


class LiraOnline(ModelAttack):
    """Likelihood ratio of the candidate's margin under ridge heads with it and without it.

    Every shadow gives both margins of every candidate exactly, from one factorisation: nothing is trained again per
    candidate, and no candidate's score depends on which others are asked about. The statistic is the hinge, which ridge
    outputs have as well as logits. With ``calibrated``, shadows are mapped to the target as in ``lira_offline``.
    """

    citation: ClassVar[str] = "carlini2022"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    shadows: int = Field(default=16, ge=1, description="heads that are solved for; at least 2")
    penalty: float = Field(
        default=1.0, gt=0, description="ridge penalty per record, for features of variance 1 on average"
    )
    variance: Variance = Field(
        default="pooled", description="of the margin over shadows: of each record by itself, or one for all"
    )
    calibrated: bool = Field(
        default=True, description="map shadows to the target by the attacker's own records"
    )
    seed: int = Field(default=0, ge=0, description="of the halves")

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        asked, owned = seen.candidates, seen.owned
        logits_TNC = seen.logits(asked)
        pairs = self._pairs(seen, (asked.vectors, asked.labels), num_classes=logits_TNC.shape[-1])
        own = self._pairs(seen, None, num_classes=logits_TNC.shape[-1])
        in_SR, out_SR = hinges(own.ins, owned.labels), hinges(own.outs, owned.labels)
        every_SR = np.ones(out_SR.shape, dtype=bool)
        ins = gaussians(hinges(pairs.ins, asked.labels), (in_SR, every_SR), self.variance)
        outs = gaussians(hinges(pairs.outs, asked.labels), (out_SR, every_SR), self.variance)
        target_TN = hinges(logits_TNC, asked.labels)
        if not self.calibrated:
            return np.stack([online(target_N, ins, outs) for target_N in target_TN])
        mean_R, typical = mean(out_SR, every_SR), float(std(out_SR, every_SR, pooled=True)[0])
        scales = [Scale.of(own_R, mean_R) for own_R in hinges(seen.logits(owned), owned.labels)]
        # what is left of the target's margin is no smaller for a record that was in it
        alike = Gaussians(ins.mean, outs.std)
        both = [tuple(scale.of_target(part, typical=typical) for part in (alike, outs)) for scale in scales]
        return np.stack([online(target_N, *parts) for target_N, parts in zip(target_TN, both, strict=True)])

    def _pairs(self, seen: Seen, asked: tuple[np.ndarray, np.ndarray] | None, *, num_classes: int) -> Pairs:
        return ridge_pairs(
            seen.owned,
            asked,
            num_classes=num_classes,
            shadows=self.shadows,
            penalty=self.penalty,
            seed=(self.seed, seen.client),
            unit=seen.unit,
        )
