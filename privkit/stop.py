"""Why a run ended before its planned rounds: the last line of its ledger."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accountant import events
from accountant.budget import Budget, tallied
from accountant.events import Composed, Event
from privkit.whole import whole

_SAME = 1e-6  # relative; other machines round otherwise


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

    def refuted_by(
        self, *, budget: Budget | None, clients: int, rounds: int, released: Sequence[tuple[int, int, Event]]
    ) -> str:
        """Return what its run contradicts in the stop, in words; empty if the run proves all of it.

        Args:
            budget: that each client of the run may spend.
            clients: how many there are.
            rounds: that were done.
            released: round, client and event of every release in the ledger.
        """
        if self.budget != budget:
            return f"it keeps {_described(self.budget)}, and the run's is {_described(budget)}"
        if self.client >= clients:
            return f"client {self.client} is none of the {clients} clients"
        mine = {round: event for round, client, event in released if client == self.client}
        waited = self.round == rounds - 1 and self.round not in mine
        if self.round != rounds and not waited:
            return f"it is about round {self.round}, and {rounds} rounds were done"
        return self._refuted_by_cost(tallied(Composed(events=tuple(mine.values()))))

    def _refuted_by_cost(self, before: Event) -> str:
        """Return what the cost of the client's releases contradicts, in words, or nothing."""
        try:
            spent = self.budget.spent(before)
            exceeds = self.budget.spent(Composed(events=(before, self.event)))
            fits = self.budget.affords(before, self.event)
        except ValueError as error:
            return f"the release it names cannot be priced: {error}"
        if fits:
            return "the client's releases leave room for one more"
        for name, said, found in (("spent", self.spent, spent), ("exceeds", self.exceeds, exceeds)):
            if not math.isclose(said, found, rel_tol=_SAME, abs_tol=_SAME):
                return f"it says {name}={said:.6g}, and the client's releases make it {found:.6g}"
        return ""

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
            budget=Budget.from_dict(why["budget"]),
            event=events.from_dict(why["event"]),
        )


def _described(budget: Budget | None) -> str:
    return "no budget" if budget is None else f"a budget of {budget} ({budget.method})"
