"""What attacks on weights share: which models a view shows of a client, and what they say of its candidates."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field, field_validator

from attacks._base import AbstractAttack, NotApplicableError, ThreatModel, Tier, asked_in, owned
from attacks._models import Model, models
from privkit.transcript import Records, ServerView

SERVER = ThreatModel(who="honest-but-curious server", knows=("the public encoder",), tier="public")
WITH_RECORDS = ThreatModel(
    who="honest-but-curious server",
    knows=("the public encoder", "records of the same domain that no client holds"),
    tier="shadow",
)
"""A server that owns records of its own to train shadows on."""

_INSIDER = "insider with the client's personalised model"
_MODEL = "the client's own trained model, which no server has: outside the claimed guarantee"


@dataclass(frozen=True, eq=False)
class Seen:
    """The models of one client, with the records that one asks about and those the attacker owns.

    Attributes:
        client: whose models.
        models: one per round that was seen.
        candidates: of this client's domain.
        reference: likewise, which the attacker owns; ``None`` where it owns none.
    """

    client: int
    models: Sequence[Model]
    candidates: Records
    reference: Records | None

    def logits(self, records: Records) -> Float64[np.ndarray, "T N C"]:
        """Return what the model of every round gives for some records; a class that it does not know is refused."""
        found = np.stack([model.logits(records.vectors) for model in self.models])
        if not np.isfinite(found).all():
            raise NotApplicableError(f"the model of client {self.client} gives logits that are not finite")
        if found.shape[-1] == 1:
            raise NotApplicableError(
                f"the head of client {self.client} has one class: it says the same of every record"
            )
        if len(records) and int(records.labels.max()) >= found.shape[-1]:
            raise NotApplicableError(
                f"class {int(records.labels.max())} is asked about, and the model of client {self.client} has "
                f"{found.shape[-1]} classes"
            )
        return found

    @property
    def unit(self) -> bool:
        """Return whether the client's head reads embeddings of length 1, so that shadows should."""
        return self.models[0].unit

    @property
    def owned(self) -> Records:
        """Return the attacker's own records.

        Raises:
            NotApplicableError: it owns none.
        """
        return owned(self.reference)


class ModelAttack(AbstractAttack):
    """Scores candidates by the models of a client; rounds are scored one by one and averaged."""

    reads: ClassVar[Literal["prototypes", "weights", "gradients"]] = "weights"

    tier: Tier | None = Field(
        default=None,
        validate_default=True,
        description="the attack's own, with the models that a server is sent; or insider, with the client's "
        "personalised one at the end",
    )

    @field_validator("tier")
    @classmethod
    def _own_or_insider(cls, tier: Tier | None) -> Tier:
        return asked_in(tier, cls.threat.tier, "insider")

    @property
    def assumed(self) -> ThreatModel:
        if self.tier == self.threat.tier:
            return self.threat
        return ThreatModel(who=_INSIDER, knows=(_MODEL, *self.threat.knows), tier="insider")

    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        scores = np.zeros(len(candidates))
        for client in np.unique(candidates.clients).tolist():
            rows = np.flatnonzero(candidates.clients == client)
            owned = None if view.reference is None else view.reference.of(client)
            seen = Seen(client, models(view, client), candidates.where(rows), owned)
            scores[rows] = self.by_round(seen).mean(0)
        return scores

    @abstractmethod
    def by_round(self, seen: Seen) -> Float64[np.ndarray, "T N"]:
        """Return a score of each candidate from the model of each round, or one row where they cannot be told apart.

        Raises:
            NotApplicableError: something that the attack needs is missing.
        """
