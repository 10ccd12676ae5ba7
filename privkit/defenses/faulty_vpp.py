"""VPP with one clip for all coordinates, for checking that an audit catches it. Never use it to protect anything.

A record may then lie in the group with the smaller noise whole: for a tenth of the coordinates it moves a mean by
2.74 times what is claimed (``privkit explain E8``).
"""

from dataclasses import dataclass, fields

import numpy as np
from jaxtyping import Int64
from pydantic import Field

from accountant.events import GroupGaussian
from privkit.clip import clip_to_ball
from privkit.defenses._base import AbstractReleaseDefense, Known, Promise
from privkit.defenses._means import ClassMeans, class_means
from privkit.defenses.vpp import GroupwiseMeans, Vpp
from privkit.embeddings import Embeddings


class FaultyVpp(AbstractReleaseDefense):
    """VPP that clips records to one ball of radius R, and claims one ball per group."""

    claims: Vpp = Field(description="the defense it claims to be")

    @property
    def promise(self) -> Promise | None:
        return self.claims.promise

    def mechanism(self, *, rounds: int) -> "OneBall":
        claimed = self.claims.mechanism(rounds=rounds)
        return OneBall(**{field.name: getattr(claimed, field.name) for field in fields(claimed)})


@dataclass(frozen=True, kw_only=True)
class OneBall(GroupwiseMeans):
    """Means of records clipped to one ball, under an event that says otherwise."""

    def means(
        self, embeddings: Embeddings, known: Known, release: GroupGaussian, group_d: Int64[np.ndarray, " d"]
    ) -> ClassMeans:
        clipped = clip_to_ball(embeddings.vectors, norm=self.clip_norm)
        return class_means(embeddings.with_vectors(clipped), known)
