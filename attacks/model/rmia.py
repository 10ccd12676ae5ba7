r"""RMIA: how many records of the population does the candidate dominate?

.. math:: \text{score}(x) = \Pr_z\left[\frac{p(x \mid \theta) / p(x)}{p(z \mid \theta) / p(z)} \ge \gamma\right],
    \qquad p(x) = \frac{(1 + a)\, p_{out}(x) + (1 - a)}{2}

Each z is judged as the candidates are, by models that have not seen it.

Source: Zarifzadeh, Liu and Shokri (2024), "Low-cost high-power membership inference attacks": the pairwise ratio and
its offline correction.
"""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import ThreatModel
from attacks.model._base import WITH_RECORDS, Seen
from attacks.model._lira import mean
from attacks.model._shadows import ShadowAttack
from attacks.model._signals import losses


class Rmia(ShadowAttack):
    """Share of the attacker's own records that the candidate's likelihood ratio dominates, averaged over rounds."""

    citation: ClassVar[str] = "zarifzadeh2024"
    threat: ClassVar[ThreatModel] = WITH_RECORDS

    gamma: float = Field(default=2.0, ge=1, description="factor by which a record must dominate another")
    offline_a: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="how a record's probability with it is guessed from that without it",
    )

    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        asked, owned = seen.candidates, seen.owned
        target_TNC = seen.logits(asked)
        made = self.heads(seen, num_classes=target_TNC.shape[-1])
        out_SN = np.exp(-losses(made.logits(asked.vectors)[-1], asked.labels))
        own_SR = np.exp(-losses(made.logits(owned.vectors)[-1], owned.labels))
        without_N = mean(out_SN, np.ones(out_SN.shape, dtype=bool))
        without_R = mean(own_SR, ~made.held)
        ratio_TN = np.exp(-losses(target_TNC, asked.labels)) / self._alone(without_N)
        ratio_TR = np.exp(-losses(seen.logits(owned), owned.labels)) / self._alone(without_R)
        return np.stack(
            [dominated(x_N, z_R, gamma=self.gamma) for x_N, z_R in zip(ratio_TN, ratio_TR, strict=True)]
        )

    def _alone(self, without_N: Float64[np.ndarray, " N"]) -> Float64[np.ndarray, " N"]:
        return 0.5 * ((1 + self.offline_a) * without_N + (1 - self.offline_a))


def dominated(
    ratio_N: Float64[np.ndarray, " N"], population_M: Float64[np.ndarray, " M"], *, gamma: float
) -> Float64[np.ndarray, " N"]:
    """Return the share of a population that each ratio is at least ``gamma`` times of, in [0, 1].

    One sort and one search each: no matrix of all pairs.
    """
    below_N = np.searchsorted(np.sort(population_M), ratio_N / gamma, side="right")
    return below_N / len(population_M)
