"""VPP as an older public revision of the authors' code drew it, with what that really costs. Protects nothing.

Four things differ from the paper, and each breaks its proof: scores are divided by their largest one, which moves
with a record; the private choice spends its whole share anew in every round; the noise groups are the largest
scores themselves, not the private choice that records were clipped by; and the noise leaves out the weights of
Eq. 12.

Source: revision ed89b228 of the repository published with VPDR, as described in its analysis.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from accountant.contract import DependsOn
from accountant.events import ClipSet, Composed, GroupGaussian, NonPrivate, PureDP
from accountant.groupwise import Allocation
from accountant.selection import scale
from accountant.vpp import SplitCalibration, sigma_ref
from privkit.clip import clip_groups
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses._means import class_means, contract_of_means
from privkit.embeddings import Embeddings
from privkit.noise import Noise
from privkit.partitions._base import largest
from privkit.partitions._scores import discriminability
from privkit.release import Prototypes
from privkit.truth import Hidden


class VppEarly(AbstractReleaseDefense):
    """States the paper's promise; its events say what it spends."""

    citation: ClassVar[str] = "vpdr"

    epsilon: float = Field(gt=0, description="privacy loss promised for the whole run, in nats")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    clip_norm: float = Field(default=1.0, gt=0, description="R, largest l2 norm of one record's embedding")
    rho: float = Field(default=0.2, gt=0, le=0.5, description="share of coordinates in the informative group")
    split: float = Field(
        default=0.1, gt=0, lt=1, description="r, fraction of epsilon meant for all selections"
    )
    score_bound: float = Field(default=0.1, gt=0, description="H, largest score")

    @property
    def promise(self) -> Promise:
        return Promise(self.epsilon, self.delta)

    def mechanism(self, *, rounds: int) -> "EarlyMeans":
        reference = sigma_ref(
            SplitCalibration.CODED, epsilon=self.epsilon, delta=self.delta, rounds=rounds, split=self.split
        )
        return EarlyMeans(self, reference)


@dataclass(frozen=True)
class EarlyMeans(Mechanism):
    """Its release of one round.

    Attributes:
        settings: of the defense.
        reference: sigma_ref as the code calibrates it; no unit.
    """

    settings: VppEarly
    reference: float

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Composed:
        radius, groups = self.settings.clip_norm, self._groups(embeddings)
        contract = contract_of_means(embeddings, known, clip_norm=radius, hyperparameters=DependsOn.PUBLIC)
        parts = (
            NonPrivate(reason="noise groups and score scale show private scores without noise"),
            PureDP(epsilon=self._spent),
            # a record of length R may lie in one noise group whole, whatever it was clipped by
            GroupGaussian(
                noise_multipliers=self._multipliers(groups),
                sizes=groups.sizes,
                clip_norms=(radius, radius),
                clip=ClipSet.GLOBAL,
            ),
        )
        return Composed(events=tuple(replace(part, contract=contract) for part in parts))

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        radius, groups = self.settings.clip_norm, self._groups(embeddings)
        # canaries are clipped and averaged with the rest, as under VPP: scores are of real records
        scores_d = discriminability(known.without_canaries(embeddings), stabiliser=1e-6)
        clip_d = self._private_choice(scores_d, groups.sizes[0], noise)
        noise_d = np.where(largest(scores_d, groups.sizes[0]), 0, 1)
        clipped = clip_groups(embeddings.vectors, clip_d, norms=groups.clip_norms(radius))
        means = class_means(embeddings.with_vectors(clipped), known)
        std_Pd = np.array(self._multipliers(groups))[noise_d] * 2.0 * radius / means.counts[:, None]
        noisy = means.vectors + std_Pd * noise.normal(means.vectors.shape)
        payload = Prototypes(vectors=noisy.astype(np.float32), labels=means.labels, counts=means.counts)
        return Privatized(payload, self.event(embeddings, known), Hidden(means.vectors, noise_d))

    def _groups(self, embeddings: Embeddings) -> Allocation:
        return Allocation.of(dim=embeddings.vectors.shape[1], rho=self.settings.rho)

    @property
    def _spent(self) -> float:
        return self.settings.split * self.settings.epsilon

    def _multipliers(self, groups: Allocation) -> tuple[float, ...]:
        return tuple(self.reference * kappa for kappa in groups.kappas)

    def _private_choice(self, scores_d: np.ndarray, size: int, noise: Noise) -> np.ndarray:
        """Return the group that each coordinate is clipped with, from scores divided by their largest."""
        bound, top = self.settings.score_bound, max(float(scores_d.max()), 1e-12)
        spread = scale(k=size, score_bound=bound, epsilon_total=self._spent)
        noisy_d = np.minimum(scores_d / top, bound) + spread * noise.laplace(scores_d.shape)
        return np.where(largest(noisy_d, size), 0, 1)
