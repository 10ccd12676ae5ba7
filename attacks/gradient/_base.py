"""What attacks on gradients share: every upload is scored alone, and the rounds of a record are fused."""

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field

from attacks._base import AbstractAttack, NotApplicableError, ThreatModel
from attacks._known_noise import words
from attacks.gradient._fusion import Rule, fused
from attacks.gradient._seen import Seen, seen
from privkit.exposure import GradientView
from privkit.transcript import Records, ServerView

SERVER = "honest-but-curious server"
MODEL = "the weights that it sent out, adapters and head included"
TEXT = "the text of the candidate"
LABEL = "its label"
BATCH = "how many records are behind an upload"
NOISE = "clip norm and noise multiplier, where there are any"
PersonalMap = Literal["identity", "estimated", "own"]
_LABELS: dict[PersonalMap, str] = {"estimated": "estimated map", "own": "insider"}
PUBLIC = "records of the same kind that no client holds"


def server(*knows: str) -> ThreatModel:
    """Return the server that sent out the model, with what else it knows; ``shadow`` if it owns records."""
    return ThreatModel(
        who=SERVER, knows=(MODEL, TEXT, *knows), tier="shadow" if PUBLIC in knows else "public"
    )


def _with_map(threat: ThreatModel, personal_map: PersonalMap) -> ThreatModel:
    """Return who attacks with what it takes for the map that a client keeps."""
    match personal_map:
        case "identity":
            return threat
        case "estimated":
            knows = dict.fromkeys(
                (*threat.knows, PUBLIC, "a rotation for the client's map, from its uploads")
            )
            return ThreatModel(who=threat.who, knows=tuple(knows), tier="shadow")
        case "own":
            own = "the client's own map, which no server has: outside the claimed guarantee"
            return ThreatModel(
                who="insider with the client's map", knows=(own, *threat.knows), tier="insider"
            )


def gradient_view(view: ServerView) -> GradientView:
    """Return a view that holds passes through the model.

    Raises:
        NotApplicableError: it holds none.
    """
    if isinstance(view, GradientView):
        return view
    sent = f"clients sent {words(view.releases[0].payload)}, and " if view.releases else ""
    raise NotApplicableError(f"{sent}the view holds no passes of candidates through the model; trace them")


class GradientAttack(AbstractAttack):
    """Scores candidates by the gradient that their client sent.

    A record that is asked about in one round is scored by that upload. One that is asked about in all rounds is a
    member if it was in any of them, so the largest score counts: a mean would drown the one round in which it was.
    """

    reads: ClassVar[Literal["prototypes", "weights", "gradients"]] = "gradients"

    personal_map: PersonalMap = Field(
        default="identity",
        description="what candidates pass that a client keeps between embedding and head: nothing (identity), the "
        "rotation that its uploads suggest (estimated), or the true map, which no server has (own)",
    )
    rounds: Literal["max", "mean", "top"] = Field(
        default="max",
        description="over the rounds that a record is asked about: largest score, mean, or top few",
    )
    top_rounds: int = Field(
        default=3, ge=1, description="rounds that count where rounds is top, those of the largest scores"
    )

    @property
    def assumed(self) -> ThreatModel:
        return _with_map(self.threat, self.personal_map)

    @property
    def label(self) -> str:
        """Return its name, and what it is given or makes that it does not by default."""
        said = (*self.variant, *(() if self.personal_map == "identity" else (_LABELS[self.personal_map],)))
        return f"{self.name} ({', '.join(said)})" if said else self.name

    @property
    def variant(self) -> tuple[str, ...]:
        """Return which of its settings its label names."""
        return ()

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        found, asked = [], []
        for upload in seen(gradient_view(view), candidates):
            scores_N, says_N = np.zeros(len(candidates)), np.zeros(len(candidates), bool)
            scores_N[upload.rows], says_N[upload.rows] = self.of_upload(upload), True
            found.append(scores_N)
            asked.append(says_N)
        if not found:
            return np.zeros(len(candidates))
        return fused(np.stack(found), np.stack(asked), rule=self.rounds, top=self.top_rounds)

    def over_rounds(self, scores_RN: Float64[np.ndarray, "R N"]) -> Float64[np.ndarray, " N"]:
        """Return what :meth:`score` says of several rounds, from what it says of each alone."""
        return fused(scores_RN, np.ones(scores_RN.shape, bool), rule=self.rounds, top=self.top_rounds)

    @abstractmethod
    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        """Return a score of each candidate of one upload; 0 for all where it holds no information.

        Raises:
            NotApplicableError: something that the attack needs is missing.
        """


class LayerAttack(GradientAttack):
    """An attack that scores each trained map alone."""

    layers: Rule = Field(
        default="max",
        description="over the trained maps that hold information: largest score, mean, top few, smallest, or the last",
    )
    top_layers: int = Field(
        default=3, ge=1, description="maps that count where layers is top, those of the largest scores"
    )

    def of_upload(self, seen: Seen) -> Float64[np.ndarray, " N"]:
        found = [self.of_map(seen, name) for name in seen.sent]
        informative = [scores_N is not None for scores_N in found]
        scores_KN = np.stack([np.zeros(len(seen.rows)) if s is None else s for s in found])
        says_KN = np.repeat(np.array(informative)[:, None], len(seen.rows), axis=1)
        return fused(scores_KN, says_KN, rule=self.layers, top=self.top_layers)

    @abstractmethod
    def of_map(self, seen: Seen, name: str) -> Float64[np.ndarray, " N"] | None:
        """Return a score of each candidate from one map's gradient, or ``None`` where that says nothing.

        Raises:
            NotApplicableError: something that the attack needs is missing.
        """
