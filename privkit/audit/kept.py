"""Whether a run kept the budget that its run.json names, as its own ledger tells."""

from collections.abc import Iterable

from accountant.budget import NOTHING, Budget
from privkit.audit.cells import Cell
from privkit.errors import InputError
from privkit.transcript import Transcript


def over_budget(cell: Cell, transcripts: Iterable[Transcript]) -> str:
    """Return the sentence that a client spent more than the budget, or nothing; the first one that did is named.

    Args:
        cell: whose runs share one budget, if they have any.
        transcripts: what each of them released.

    Raises:
        InputError: the budget has no meaning for what was released.
    """
    budget, names = cell.first.budget, cell.first.info.clients
    if budget is None:
        return ""
    try:
        found = (
            _over(budget, transcript, client, names[client])
            for transcript in transcripts
            for client in transcript.clients
        )
        return next((sentence for sentence in found if sentence), "")
    except ValueError as error:
        raise InputError(f"cell {cell.name}: {error}") from None


def _over(budget: Budget, transcript: Transcript, client: int, name: str) -> str:
    event = transcript.cost(client)
    if budget.affords(event, NOTHING):
        return ""
    return f"{name} has spent epsilon {budget.spent(event):.6g}, more than the budget of {budget}"
