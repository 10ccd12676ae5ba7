"""What an attack is: who attacks, what it knows, and one score per candidate. Never a metric."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from privkit.plug import Plugin
from privkit.transcript import Records, ServerView


class NotApplicableError(ValueError):
    """This attack has nothing to work on in this run; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """Who attacks, and what it is assumed to know.

    Attributes:
        who: the attacker's role.
        knows: everything it has beside the transcript, in words.
        tier: ``public`` (public encoder only), ``shadow`` (records of the same population too) or
            ``design`` (chose the planted record).
    """

    who: str
    knows: tuple[str, ...]
    tier: Literal["public", "shadow", "design"]


class AbstractAttack(Plugin):
    """Scores candidates from what a server saw. Higher means: was trained on (or planted as it stands)."""

    threat: ClassVar[ThreatModel]
    asks_about: ClassVar[str] = "records"
    """What its candidates are: ``records``, ``canaries`` (as they stand or negated), or another kind of canaries."""
    reaches_claim: ClassVar[bool] = False
    """Whether it is as good as a claim allows: the mu it shows is then about that of a correct mechanism."""

    @property
    def about_canaries(self) -> bool:
        """Return whether its candidates were planted, and so test the mechanism itself."""
        return self.asks_about != "records"

    @abstractmethod
    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        """Return one finite score per candidate, in their order.

        Raises:
            NotApplicableError: the view lacks what the attack needs.
        """
