"""What a server knows of the noise on one gradient, from the event that came with it."""

import math
from dataclasses import dataclass

from accountant.contract import Query
from accountant.events import Gaussian, Leaf, NonPrivate, SubsampledGaussian, leaves
from accountant.relations import reach
from attacks._base import NotApplicableError
from privkit.release import Release


@dataclass(frozen=True)
class Noise:
    """How the gradients of one upload were clipped, and the noise on their sum.

    Attributes:
        clip_norm: largest l2 norm of one record's gradient over all trained maps together; infinite without a clip.
        std: standard deviation of the noise on each number of the sum over the batch; 0 without noise.
    """

    clip_norm: float = float("inf")
    std: float = 0.0

    def of_many(self, senders: int) -> "Noise":
        """Return the noise on the sum of so many messages, each with noise of its own."""
        return Noise(self.clip_norm, self.std * math.sqrt(senders))


def noise_of(release: Release) -> Noise:
    """Return the clip and the noise of one release.

    A multiplier is stated against the sensitivity of a sum under its contract's relation, so the standard deviation is
    ``multiplier * reach * clip norm`` (:mod:`accountant.relations`).

    Raises:
        NotApplicableError: noise was added and its size is not known.
    """
    found = [leaf for leaf, _ in leaves(release.event)]
    noisy = [leaf for leaf in found if isinstance(leaf, Gaussian | SubsampledGaussian)]
    clips = [leaf.contract.clip_norm for leaf in found if leaf.contract.clip_norm is not None]
    clip = min(clips, default=float("inf"))
    if not noisy and all(isinstance(leaf, NonPrivate) for leaf in found):
        return Noise(clip)
    if len(noisy) != 1 or len(found) != 1 or not clips:
        raise NotApplicableError(
            f"the noise on the gradient of client {release.client} is not known from its "
            f"{type(release.event).__name__}; declare one Gaussian event with the clip norm in its contract"
        )
    return Noise(clip, noisy[0].noise_multiplier * _reach(noisy[0]) * clip)


def _reach(leaf: Leaf) -> float:
    """Return how many clip norms one record moves the sum of gradients by."""
    query = leaf.contract.query or Query.RECORD_SUM
    try:
        return reach(query, leaf.contract.relation)
    except ValueError as reason:
        raise NotApplicableError(str(reason)) from None
