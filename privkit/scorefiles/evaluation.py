"""privkit's own format in JSON, documented in docs/scores.md: one evaluation, attack by attack."""

import itertools
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, StrictInt, StrictStr, ValidationError

from privkit import plug
from privkit.errors import InputError
from privkit.plug import Settings
from privkit.scorefiles._base import AbstractScoreFile, Direction, Evaluation, Pairing, Score, Scored

_LONGEST = 400  # characters of a refusal; a value in it may be a list of all scores


class Releases(Settings):
    """Which release each candidate's score comes from, in the order of the scores."""

    members: list[StrictInt | StrictStr] = Field(description="One id per member; equal ids share a release.")
    non_members: list[StrictInt | StrictStr] = Field(description="One id per non-member.")


class Attack(Settings):
    """The scores of one attack."""

    attack: str = Field(min_length=1, description="Name of the attack, once per file.")
    member_has: Direction = Field(description="Which scores speak for a member: higher or lower.")
    members: list[Score] = Field(description="One finite score per member, in any unit.")
    non_members: list[Score] = Field(description="One finite score per non-member, in the same unit.")


class Document(Settings):
    """One evaluation: attacks on one model."""

    privkit_scores: Literal[1] = Field(description="Version of the format: 1.")
    model: str | None = Field(None, description="What was attacked.")
    data: str | None = Field(None, description="Data set that candidates come from.")
    same_candidates: bool | None = Field(
        None,
        description="Whether all attacks scored the same candidates in the same order; left out: assumed.",
    )
    releases: Releases | None = Field(None, description="Releases behind the candidates; left out: unknown.")
    attacks: list[Attack] = Field(description="One entry per attack, at least one.")


class JsonEvaluation(AbstractScoreFile):
    """JSON with ``privkit_scores: 1`` and a list of attacks."""

    looks_like: ClassVar[str] = (
        'JSON with "privkit_scores": 1 and "attacks", each with attack, member_has, members and non_members '
        "(docs/scores.md)"
    )

    def recognises(self, document: Any) -> bool:
        """Return whether the version or the list of attacks is there."""
        return isinstance(document, dict) and not {"privkit_scores", "attacks"}.isdisjoint(document)

    def read(self, document: Any, path: Path) -> Evaluation:
        """Return the evaluation; an unknown key or a value of another kind is refused."""
        try:
            found = Document.model_validate(document)
        except ValidationError as error:
            raise InputError(_short(plug.describe(error, Document))) from None
        _refuse_unequal(found)
        releases = found.releases and (found.releases.members, found.releases.non_members)
        pairing = {True: Pairing.STATED, False: Pairing.DIFFERENT, None: Pairing.ASSUMED}
        return Evaluation(
            attacks=[Scored(**dict(attack), releases=releases) for attack in found.attacks],
            pairing=pairing[found.same_candidates],
            model=found.model,
            data=found.data,
        )


def _refuse_unequal(found: Document) -> None:
    """Raise if attacks are said to have scored the same candidates, and scored another number of them."""
    for first, other in itertools.pairwise(found.attacks if found.same_candidates else ()):
        here, there = (f"{len(one.members)} and {len(one.non_members)}" for one in (first, other))
        if here != there:
            raise InputError(
                f"same_candidates is true, and attack {first.attack!r} scores {here} candidates (members and "
                f"non-members), {other.attack!r} {there}; give both the same ones, or say false."
            )


def _short(sentence: str) -> str:
    half = _LONGEST // 2
    return sentence if len(sentence) <= _LONGEST else f"{sentence[:half]} … {sentence[-half:]}"
