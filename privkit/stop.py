"""Why a run ended before its planned rounds: the last line of its ledger."""

import math
from dataclasses import dataclass
from typing import Any

from accountant import events
from accountant.budget import Budget, tallied
from accountant.events import Event
from privkit.whole import whole


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A release that was not made, because it would have exceeded the budget.

    Attributes:
        round: it would have been in, from 0.
        client: that cannot afford it; of several, the first.
        spent: epsilon of everything the client released before, in nats.
        exceeds: epsilon that the release would have made it; inf for one without noise.
        budget: that was kept.
        event: of the release.
    """

    round: int
    client: int
    spent: float
    exceeds: float
    budget: Budget
    event: Event

    def proven_by(self, spent: Event) -> bool:
        """Return whether what the ledger says the client released leaves no room for the release."""
        return not self.budget.affords(tallied(spent), self.event)

    def sentence(self, *, client: str, completed: int, planned: int) -> str:
        """Return what happened, for people: rounds are counted from 1."""
        where = "before" if self.round >= completed else "in"
        return (
            f"stopped {where} round {self.round + 1} of {planned}: {client} has spent epsilon {self.spent:.6g} of "
            f"{self.budget.epsilon:g} at delta {self.budget.delta:g}, and its next release would make it "
            f"{self.exceeds:.6g}"
        )

    def to_entry(self) -> dict[str, Any]:
        """Return the stop as an entry of a ledger."""
        return {
            "round": self.round,
            "client": self.client,
            "stop": {
                "spent": self.spent,
                "exceeds": self.exceeds if math.isfinite(self.exceeds) else None,
                "budget": self.budget.to_dict(),
                "event": events.to_dict(self.event),
            },
        }

    @classmethod
    def from_entry(cls, entry: dict[str, Any]) -> "Stop":
        """Read what :meth:`to_entry` returned."""
        why = entry["stop"]
        return cls(
            round=whole("round", entry["round"], least=0),
            client=whole("client", entry["client"], least=0),
            spent=float(why["spent"]),
            exceeds=math.inf if why["exceeds"] is None else float(why["exceeds"]),
            budget=Budget(**why["budget"]),
            event=events.from_dict(why["event"]),
        )
