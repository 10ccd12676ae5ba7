"""VPP: coordinates in two groups, each clipped to its own ball, with less noise on the informative one.

Replacing one record of a class by another of the same class moves group g of that class's mean by at most
``2 R_g / n_c``, in both groups at once, and no other mean. Noise of ``sigma_g 2 R_g / n_c`` on each group is
then one Gaussian mechanism with ``1/sigma_ref^2 = sum_g 1/sigma_g^2``, whatever partition was used, as long
as it was fixed before the noise was drawn; a partition that looked at records costs its own part. Clipped to the
ellipsoid around the two balls instead, a record moves its class by as much in units of the same noise, and keeps more
of itself (:mod:`accountant.groupwise`).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from jaxtyping import Int64
from pydantic import Field, field_serializer, field_validator

from accountant.beside import sigma_beside
from accountant.contract import DependsOn, Query
from accountant.events import ClipSet, Composed, Event, GroupGaussian, Leaf, PureDP
from accountant.groupwise import Allocation
from accountant.vpp import SplitCalibration, sigma_ref
from privkit import plug
from privkit.defenses._base import NOTHING, AbstractReleaseDefense, Known, Mechanism, Privatized, Promise
from privkit.defenses._clipped import clipped_means
from privkit.defenses._means import ClassMeans, contract_of_means, refuse_single_records
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import Noise
from privkit.partitions._base import AbstractPartition, Memory
from privkit.partitions._overlap import overlap
from privkit.partitions.laplace import Laplace
from privkit.release import Prototypes
from privkit.truth import Hidden


class Vpp(AbstractReleaseDefense):
    """Variance-adaptive prototype perturbation (VPDR, Section 4.2).

    The paper leaves its noise constant open and splits epsilon linearly; ``calibration`` says what is done.
    A client of one class has nothing to tell apart: all its scores are 0, and a private selection is a coin.
    """

    citation: ClassVar[str] = "vpdr"

    epsilon: float = Field(gt=0, description="privacy loss promised for the whole run, in nats")
    delta: float = Field(default=1e-5, gt=0, lt=1, description="probability that the promise fails")
    clip_norm: float = Field(default=1.0, gt=0, description="R, largest l2 norm of one record's embedding")
    rho: float = Field(
        default=0.2, gt=0, le=0.5, description="share of coordinates in the informative group, at most a half"
    )
    clip: Literal["groupwise", "ellipsoid"] = Field(
        default="groupwise",
        description="what records are clipped into: a ball per group, or the ellipsoid around both, at the same noise",
    )
    partition: AbstractPartition = Field(
        default_factory=Laplace, description="who chooses the informative group, and at what cost"
    )
    calibration: SplitCalibration = Field(
        default=SplitCalibration.JOINT,
        description="how noise is found that keeps selection and release in epsilon",
    )
    smallest_class: int = Field(
        default=2,
        ge=1,
        description="fewest records that a class may be released with; 1 allows single records",
    )
    hyperparameters: DependsOn = Field(
        default=DependsOn.PUBLIC, description="what R, rho, epsilon and the rounds were chosen from"
    )

    @field_validator("partition", mode="before")
    @classmethod
    def _built(cls, value: Any) -> Any:
        return value if isinstance(value, AbstractPartition) else plug.build("privkit.partitions", value)

    @field_serializer("partition")
    def _plain(self, partition: AbstractPartition) -> dict[str, Any]:
        return partition.settings()

    @property
    def promise(self) -> Promise | None:
        return Promise(self.epsilon, self.delta) if self.partition.private else None

    def mechanism(self, *, rounds: int) -> "GroupwiseMeans":
        promise = {"epsilon": self.epsilon, "delta": self.delta, "rounds": rounds}
        budget = self.partition.budget(**promise)
        return GroupwiseMeans(
            noise_multiplier=self._sigma_ref(budget, promise),
            clip_norm=self.clip_norm,
            rho=self.rho,
            clip=ClipSet[self.clip.upper()],
            partition=self.partition,
            budget=budget,
            hyperparameters=self.hyperparameters,
            smallest_class=self.smallest_class,
        )

    def _sigma_ref(self, budget: Leaf | None, promise: dict[str, Any]) -> float:
        choices = self.partition.choices(promise["rounds"])
        if self.calibration is SplitCalibration.JOINT:
            return sigma_beside(budget, **promise, selections=choices)
        if not isinstance(budget, PureDP):
            raise InputError(
                f"calibration {self.calibration.value!r} splits epsilon with a pure selection, and partition "
                f"{self.partition.name} is none; use calibration joint."
            )
        return sigma_ref(self.calibration, **promise, split=choices * budget.epsilon / self.epsilon)


@dataclass(frozen=True, kw_only=True)
class GroupwiseMeans(Mechanism):
    """Class means of groupwise clipped records, with Gaussian noise that differs by group.

    Attributes:
        noise_multiplier: sigma_ref, that of the equivalent single Gaussian; no unit.
        clip_norm: R.
        rho: share of coordinates in the informative group.
        clip: the set that records are clipped into.
        partition: who chooses that group.
        budget: what one choice may cost; ``None`` for nothing.
        hyperparameters: what all of these were chosen from.
        smallest_class: fewest records that a class may be released with.
    """

    noise_multiplier: float
    clip_norm: float
    rho: float
    clip: ClipSet
    partition: AbstractPartition
    budget: Leaf | None
    hyperparameters: DependsOn
    smallest_class: int = 2

    def event(self, embeddings: Embeddings, known: Known = NOTHING) -> Event:
        groups = self._groups(embeddings)
        release = self._release(groups)
        longest = max(self.clip_norm, *release.clip_norms)
        contract = contract_of_means(
            embeddings, known, clip_norm=longest, hyperparameters=self.hyperparameters
        )
        release = replace(release, contract=contract)
        choice = self._cost(groups, known)
        if choice is None:
            return release
        contract = replace(release.contract, query=Query.BOUNDED_SCORES, class_counts=())
        return Composed(events=(replace(choice, contract=contract), release))

    def privatize(self, embeddings: Embeddings, noise: Noise, known: Known = NOTHING) -> Privatized:
        groups = self._groups(embeddings)
        # canaries are clipped and averaged with the rest; the choice is for real records, and stays theirs
        own = known.without_canaries(embeddings)
        informative_d = self.partition.choose(
            own,
            size=groups.sizes[0],
            cost=self._cost(groups, known),
            public=known.public,
            memory=known.memory,
            noise=noise,
        )
        group_d = np.where(informative_d, 0, 1)
        release = self._release(groups)
        means = self.means(embeddings, known, release, group_d)
        refuse_single_records(means, least=self.smallest_class)
        std_d = np.multiply(release.noise_multipliers, release.clip_norms)[group_d] * 2.0
        noisy = means.vectors + noise.normal(means.vectors.shape) * std_d / means.counts[:, None]
        payload = Prototypes(vectors=noisy.astype(np.float32), labels=means.labels, counts=means.counts)
        hidden = Hidden(means.vectors, group_d, overlap=overlap(own, informative_d))
        return Privatized(payload, self.event(embeddings, known), hidden)

    def means(
        self, embeddings: Embeddings, known: Known, release: GroupGaussian, group_d: Int64[np.ndarray, " d"]
    ) -> ClassMeans:
        """Return the means of records clipped as a release of these groups says."""
        return clipped_means(embeddings, known, clip=release.clip, group_d=group_d, norms=release.clip_norms)

    def remember(self, known: Known, sent: Privatized) -> Memory:
        real = sent.payload.only(known.real(sent.payload.labels)).prototypes()
        return self.partition.remember(known.memory, real, sent.hidden.groups == 0)

    def _groups(self, embeddings: Embeddings) -> Allocation:
        return Allocation.of(dim=embeddings.vectors.shape[1], rho=self.rho)

    def _release(self, groups: Allocation) -> GroupGaussian:
        return groups.release(sigma_ref=self.noise_multiplier, clip_norm=self.clip_norm, clip=self.clip)

    def _cost(self, groups: Allocation, known: Known) -> Leaf | None:
        """Return what the next choice costs; a partition that was given a budget and states no cost is refused."""
        cost = self.partition.cost(self.budget, size=groups.sizes[0], dim=groups.dim, memory=known.memory)
        if self.budget is not None and cost is None and not known.memory:
            raise InputError(
                f"partition {self.partition.name} asked for a budget and states no cost; return what it spends, or a "
                "budget of None."
            )
        return cost
