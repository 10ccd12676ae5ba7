"""What was promised: the cost of everything one client released."""

from collections.abc import Sequence

from accountant.claims import claim
from accountant.events import Event
from privkit.audit.cells import Cell
from privkit.transcript import Transcript
from reports.findings import Promised


def worst_event(
    transcripts: Sequence[Transcript], *, delta: float, client: int | None = None
) -> Event | None:
    """Return all that the client that spends most released, or ``None`` if nobody released anything.

    Args:
        transcripts: of the runs of one cell.
        delta: that spending is compared at.
        client: whose releases count, in the run where it spends most; everybody's by default.
    """
    spent = [
        (claim(event, delta=delta).epsilon, event)
        for transcript in transcripts
        for event in (transcript.cost(m) for m in transcript.clients if client in (None, m))
    ]
    return max(spent, key=lambda pair: pair[0])[1] if spent else None


def promised(cell: Cell, event: Event) -> Promised:
    """Return the claim of a cell whose costliest client released ``event``."""
    stated = cell.first.info.promise
    return Promised(
        stated=None if stated is None else float(stated["epsilon"]),
        claim=claim(event, delta=cell.delta),
    )


def overspent(found: Promised) -> str:
    """Return the sentence that the ledger costs more than was promised, or nothing."""
    if found.stated is None or found.claim.epsilon <= found.stated * (1 + 1e-9):
        return ""
    return (
        f"the ledger's events cost epsilon {found.claim.epsilon:.6g}, "
        f"more than the {found.stated:g} that was promised"
    )
