"""What a file of scores holds once it is read: per attack its direction and its scores, and what they share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from jaxtyping import Float
from pydantic import Field

from attacks.statistics.clusters import Clusters
from attacks.statistics.scores import as_scores
from privkit.errors import InputError
from privkit.plug import Plugin

Score = Annotated[float | None, Field(strict=True, allow_inf_nan=True)]
"""A number as JSON writes it. What is not finite is refused later, by its index."""


Scores = Sequence[float | None] | np.ndarray
"""One score per candidate of a class."""


class Direction(StrEnum):
    """Which scores speak for a member. It is declared; nothing guesses it from the scores."""

    HIGHER = "higher"
    LOWER = "lower"

    @property
    def sign(self) -> float:
        """Return what scores are multiplied with so that higher means member."""
        return {Direction.HIGHER: 1.0, Direction.LOWER: -1.0}[self]


class Pairing(StrEnum):
    """Whether all attacks scored the same candidates in the same order, and who says so."""

    STATED = "stated"
    ASSUMED = "assumed"
    DIFFERENT = "different"


@dataclass(frozen=True, eq=False, kw_only=True)
class Scored:
    """The scores of one attack, as they are in the file.

    Attributes:
        attack: its name, unique in a file.
        member_has: which scores speak for a member.
        members: one finite score per member; may be empty.
        non_members: one finite score per non-member; may be empty.
        releases: ids, per member and per non-member, of the releases that scores come from; ``None`` if not known.
    """

    attack: str
    member_has: Direction
    members: Scores
    non_members: Scores
    releases: Clusters | None = None

    def __post_init__(self) -> None:
        scored = ("members", self.members), ("non_members", self.non_members)
        for (kind, scores), ids in zip(scored, self.releases or (), strict=False):
            named = len(np.asarray(ids))
            if named != len(scores):
                raise InputError(
                    f"releases names {named} {kind}, and attack {self.attack!r} scores {len(scores)}; give one id per "
                    "score, in their order."
                )

    def toward_member(self) -> tuple[Float[np.ndarray, " M"], Float[np.ndarray, " N"]]:
        """Return the scores of members and non-members, higher = member.

        Raises:
            ValueError: a score is not a finite number.
        """
        sign = self.member_has.sign
        return sign * _finite(self.members, "members"), sign * _finite(self.non_members, "non_members")


def _finite(scores: Scores, name: str) -> Float[np.ndarray, " K"]:
    return as_scores(np.asarray(scores, dtype=np.float64), name=name)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evaluation:
    """Attacks on one model: what one file holds.

    Attributes:
        attacks: in the order of the file, at least one.
        pairing: whether they scored the same candidates in the same order.
        model: what was attacked, if the file says so.
        data: which data set, if the file says so.
        notes: sentences about what is known of such files.
    """

    attacks: Sequence[Scored]
    pairing: Pairing
    model: str | None = None
    data: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [scored.attack for scored in self.attacks]
        if not names:
            raise InputError("there is no attack in it; give the scores of at least one.")
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"attack {twice!r} is there twice; give each attack its own name.")


class AbstractScoreFile(Plugin, ABC):
    """One format of files. :attr:`looks_like` says in words what such a file has, for who gives another."""

    looks_like: ClassVar[str]

    @abstractmethod
    def recognises(self, document: Any) -> bool:
        """Return whether a document is meant to be of this format: JSON's value, or a pandas DataFrame."""

    @abstractmethod
    def read(self, document: Any, path: Path) -> Evaluation:
        """Return what a document holds; anything in it that is not of the format is refused.

        Args:
            document: one that :meth:`recognises` says yes to.
            path: where it comes from; some formats say in the name what was attacked.

        Raises:
            InputError: what is wrong, in a sentence that goes on after the file's name.
        """
