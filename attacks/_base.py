"""What an attack is: who attacks, what it knows, and one score per candidate. Never a metric."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from privkit.plug import Plugin
from privkit.transcript import Records, ServerView

Tier = Literal["public", "shadow", "design", "client", "insider"]
"""What an attacker has, in one word; the last two have more than any server, so no claim is about them."""

BEYOND: tuple[Tier, ...] = ("client", "insider")

Family = Literal["projection", "reproduction", "rival", "adaptive"]
"""What an attack on gradients is compared as: ProjRes, its published code, what was published beside it, or what knows
that ProjRes is defended against."""


OWN_MORE = "set split.reference higher, or give a recorded run more with recorder.ask(..., reference=...)"
"""What an attacker who owns too few records can do."""


class NotApplicableError(ValueError):
    """This attack has nothing to work on in this run; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class ThreatModel:
    """Who attacks, and what it is assumed to know.

    Attributes:
        who: the attacker's role.
        knows: everything it has beside the transcript, in words.
        tier: ``public`` (public encoder only), ``shadow`` (records of the same population too), ``design``
            (chose the planted record), ``client`` (the client's own encoder) or ``insider`` (its personalised model).
    """

    who: str
    knows: tuple[str, ...]
    tier: Tier


class AbstractAttack(Plugin):
    """Scores candidates from what a server saw. Higher means: was trained on (or planted as it stands)."""

    threat: ClassVar[ThreatModel]
    asks_about: ClassVar[str] = "records"
    """What its candidates are: ``records``, ``canaries`` (as they stand or negated), or another kind of canaries."""
    reads: ClassVar[Literal["prototypes", "weights", "gradients"]] = "prototypes"
    family: ClassVar[Family | None] = None
    """What tables of defenses compare it as, which attacks on gradients say; ``None``: they are not about it."""
    reaches_claim: ClassVar[bool] = False
    """Whether it is as good as a claim allows: the mu it shows is then about that of a correct mechanism."""

    @property
    def about_canaries(self) -> bool:
        """Return whether its candidates were planted, and so test the mechanism itself."""
        return self.asks_about != "records"

    @property
    def assumed(self) -> ThreatModel:
        """Return who attacks with these settings; :attr:`threat`, unless it is given more than a server has."""
        return self.threat

    @property
    def label(self) -> str:
        """Return what rows of a table call it: its name, and the tier if that is above the server's."""
        tier = self.assumed.tier
        return f"{self.name} ({tier})" if tier in BEYOND else self.name

    def expected(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"] | None:
        """Return the AUC to expect of it on what each candidate is asked about, told before anything was sent.

        Not a number where none is known; ``None`` of an attack whose AUC no law tells.
        """
        return None

    @abstractmethod
    def score(self, view: ServerView, candidates: Records) -> Float64[np.ndarray, " N"]:
        """Return one finite score per candidate, in their order.

        Raises:
            NotApplicableError: the view lacks what the attack needs.
        """


def asked_in(given: Tier | None, own: Tier, above: Tier) -> Tier:
    """Return the tier that an attack is asked in: its own where none is given, or the one above the server's.

    Raises:
        ValueError: it cannot be asked in the given one.
    """
    if given not in (None, own, above):
        raise ValueError(f"this attack is of tier {own}; leave tier out, or ask it in tier {above}")
    return given or own


def owned(reference: Records | None) -> Records:
    """Return the attacker's own records.

    Raises:
        NotApplicableError: it owns none.
    """
    if reference is None:
        raise NotApplicableError(
            "the attacker owns no reference records; set split.reference above 0, or give a recorded run some with "
            "recorder.ask(..., reference=...)"
        )
    return reference
