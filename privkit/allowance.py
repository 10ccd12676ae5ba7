"""What each client of a run has spent, and whether its next release still fits the budget."""

from collections.abc import Iterable

from accountant.budget import NOTHING, Budget, refuse_mixture, tallied
from accountant.events import Composed, Event
from privkit.stop import Stop


class Allowance:
    """The releases of each client of a run, set against one budget."""

    def __init__(self, budget: Budget | None, releases: Iterable[tuple[int, Event]] = ()) -> None:
        """Start from what the ledger holds.

        Args:
            budget: the most that each client may spend; ``None`` limits nothing, but still adds up what was spent.
            releases: client and event of everything released so far.
        """
        self.budget = budget
        self._spent: dict[int, Event] = {}
        for client, event in releases:
            self.add(client, event)

    def spent(self, client: int) -> Event:
        """Return everything a client released."""
        return self._spent.get(client, NOTHING)

    def add(self, client: int, event: Event) -> None:
        """Note a release."""
        self._spent[client] = tallied(Composed(events=(self.spent(client), event)))

    def exceeded(self, *, round: int, client: int, event: Event) -> Stop | None:
        """Return why a client's next release must not be made, or ``None`` if it fits.

        Raises:
            ValueError: the release cannot be added to those before it, or the budget has no meaning for it.
        """
        before = self.spent(client)
        if self.budget is None:
            refuse_mixture(Composed(events=(before, event)))
            return None
        if self.budget.affords(before, event):
            return None
        return Stop(
            round=round,
            client=client,
            spent=self.budget.spent(before),
            exceeds=self.budget.spent(Composed(events=(before, event))),
            budget=self.budget,
            event=event,
        )
