"""What attacks that rebuild images have in common: who attacks, what is rebuilt, and how the attempts come."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from attacks._base import NotApplicableError
from attacks.hijack._attempts import Attempts
from attacks.hijack._goals import Goal, control, released, spread, vector
from privkit.plug import Plugin
from privkit.transcript import ServerView

if TYPE_CHECKING:
    from torch import Tensor

    Encoder = Callable[[Tensor, Tensor], Tensor]

Tier = Literal["public", "shadow", "client"]
Pictures = Float32[np.ndarray, "N c height width"]
"""Pixels in [0, 1]."""

KNOWS: dict[Tier, tuple[str, ...]] = {
    "public": ("the public backbone", "the weights that training started from"),
    "shadow": (
        "the public backbone",
        "the weights that training started from",
        "how clients train",
        "records of the same domains that no client holds",
    ),
    "client": ("the client's own trained encoder, which no server has: an upper bound",),
}


class AbstractHijack(Plugin):
    """Rebuilds, for some released prototypes, an image with the same embedding direction. It scores no candidate."""

    who: ClassVar[str] = "honest-but-curious server"
    reads_pictures: ClassVar[bool] = False
    """Whether it needs images that the attacker owns."""

    tier: Tier = Field(
        default="public",
        description="encoder it holds: as broadcast; with an adapter trained on its own records; the client's own",
    )
    targets: int = Field(
        default=3, ge=1, description="prototypes to invert per run, spread over clients and classes"
    )
    seeds: int = Field(default=1, ge=1, description="runs of a cell that are attacked")
    largest_image: int | None = Field(
        default=4096,
        ge=1,
        description="numbers (channels x height x width) of the largest image that is rebuilt; larger ones take "
        "minutes per cell, and are only rebuilt where this is null",
    )
    round: int | None = Field(
        default=None,
        ge=0,
        description="round whose prototypes are inverted; none averages all rounds by the precision of their noise; "
        "several prototypes of a class are made its mean, weighted by the counts that were sent, or alike without any",
    )

    @property
    def label(self) -> str:
        """Return what it is called beside others: its name and tier."""
        return f"{self.name} ({self.tier})"

    @property
    def knows(self) -> tuple[str, ...]:
        """Return, in words, everything the attacker has beside the transcript."""
        return KNOWS[self.tier]

    @property
    @abstractmethod
    def effort(self) -> str:
        """Return, in words, how long it tries."""

    @property
    @abstractmethod
    def per_goal(self) -> int:
        """Return the number of attempts at each goal; the one with the smallest loss is kept."""

    @property
    def target(self) -> str:
        """Return, in words, which releases are inverted."""
        if self.round is None:
            return "prototypes averaged over all rounds by the precision of their noise"
        return f"prototypes of round {self.round}"

    def refuse_large(self, image_shape: tuple[int, int, int]) -> None:
        """Raise if images of some channels, height and width are larger than wanted.

        Raises:
            NotApplicableError: they are.
        """
        channels, height, width = image_shape
        if self.largest_image is not None and channels * height * width > self.largest_image:
            raise NotApplicableError(
                f"images of {channels} x {height} x {width} take minutes per cell; set largest_image: null for "
                f"{self.name}, as configs/hijack.yaml does, and give the file to --config"
            )

    def goals(self, view: ServerView, *, num_classes: int, seed: int) -> list[Goal]:
        """Return what to rebuild, client by client, each goal followed by a random direction to compare with.

        Args:
            view: what the server saw.
            num_classes: labels from here on are no classes of records, and are left alone.
            seed: decides which prototypes are chosen, and the directions.

        Raises:
            NotApplicableError: there is no prototype, none of the wanted round, or its noise is not known.
        """
        pairs = released(view, round=self.round, num_classes=num_classes)
        chosen = sorted(spread(pairs, self.targets, seed=seed))
        wanted = [Goal(client=c, label=y, vector=vector(view, c, y, round=self.round)) for c, y in chosen]
        return [one for goal in wanted for one in (goal, control(goal, seed))]

    @abstractmethod
    def rebuild(
        self,
        goals: Sequence[Goal],
        encoder: "Encoder",
        *,
        image_shape: tuple[int, int, int],
        seed: int,
        owned: Pictures | None = None,
        done: int = 0,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Iterator[Attempts]:
        """Yield, part after part, ``per_goal`` attempts at every goal, in the order of the goals.

        Args:
            goals: where embeddings are to point.
            encoder: maps images [N, c, height, width], pixels in [0, 1], and the client of each, [N], to
                embeddings [N, d], with gradients; no image may change another's embedding.
            image_shape: channels, height and width.
            seed: of everything drawn.
            owned: images that the attacker owns and no client holds.
            done: attempts made already, a whole number of parts: they are left out.
            progress: called with steps done, and of how many.

        Raises:
            NotApplicableError: a goal is not as wide as an embedding, embeddings are not finite, or the attacker
                owns no images and needs some.
        """


def refuse_other_width(goal_width: int, embedding_width: int) -> None:
    """Raise if prototypes and embeddings are not of one space.

    Raises:
        NotApplicableError: they are not.
    """
    if goal_width != embedding_width:
        raise NotApplicableError(
            f"prototypes have {goal_width} numbers and embeddings {embedding_width}; inversion needs prototypes in the "
            "space of the embeddings"
        )
