"""What was promised: the cost of everything one client released."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from accountant.budget import Budget
from accountant.claims import Claim, claim, neighbours
from accountant.events import Event
from privkit.audit.cells import Cell
from privkit.audit.contradicted import contradicted
from privkit.transcript import Transcript
from reports.findings import Elsewhere, Promised


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
        (_weight(claim(event, delta=delta)), event)
        for transcript in transcripts
        for event in (transcript.cost(m) for m in transcript.clients if client in (None, m))
    ]
    return max(spent, key=lambda pair: pair[0])[1] if spent else None


def _weight(found: Claim) -> tuple[float, float]:
    """Return what clients are compared by: epsilon, and where it is the same, what their broken assumptions cost."""
    return found.epsilon, max((b.epsilon for b in found.broken if b.epsilon is not None), default=0.0)


def promised(cell: Cell, event: Event, transcripts: Sequence[Transcript]) -> Promised:
    """Return the claim of a cell whose costliest client released ``event``, with what its messages contradict."""
    stated = cell.first.info.promise
    budget = kept_filter(cell, event)
    found = claim(event, delta=cell.delta) if budget is None else budget.claim(event, delta=cell.delta)
    return Promised(
        stated=None if stated is None else float(stated["epsilon"]),
        claim=replace(found, broken=found.broken + contradicted(transcripts)),
        elsewhere=tuple(_under(event, delta=cell.delta)),
    )


def kept_filter(cell: Cell, event: Event) -> Budget | None:
    """Return the budget that is all that some releases promise: they were chosen from earlier outputs, and it held."""
    budget = cell.first.budget
    return budget if budget is not None and budget.stands_for(event) else None


def _under(event: Event, *, delta: float) -> Iterator[Elsewhere]:
    for relation, found in neighbours(event, delta=delta).items():
        yield Elsewhere(relation=relation.value, **vars(found))


def overspent(found: Promised) -> str:
    """Return the sentence that the ledger costs more than was promised, or nothing."""
    if found.stated is None or found.claim.epsilon <= found.stated * (1 + 1e-9):
        return ""
    return (
        f"the ledger's events cost epsilon {found.claim.epsilon:.6g}, "
        f"more than the {found.stated:g} that was promised"
    )
