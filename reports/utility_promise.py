"""What breaks a cell's promise, read off the ledger of one of its runs: nothing of it needs an audit."""

from collections.abc import Iterable

from accountant import events
from accountant.assumptions import broken, in_order, needed
from accountant.cost import total
from accountant.events import Event, counted
from privkit.atomic import canonical_json
from privkit.store import Run


def broken_in(run: Run) -> tuple[str, ...]:
    """Return why what a run released is no promise, one sentence each, A1 first; nothing if it is one.

    The costs of the releases are not added up: that, and whether the noise was drawn, are an audit's questions.
    """
    distinct = {canonical_json(entry["event"]): entry["event"] for entry in run.entries()}
    return reasons(events.from_dict(plain) for plain in distinct.values())


def reasons(released: Iterable[Event]) -> tuple[str, ...]:
    """Return what the contracts of some releases break or leave undeclared, as ``A1: why``.

    >>> from accountant.events import Gaussian
    >>> reasons([Gaussian(noise_multiplier=1.0)])[0]
    'A1: what the encoder was computed from is not declared'
    """
    found: dict[tuple[str, str], None] = {}
    unbounded: list[str] = []
    for event in released:
        for leaf in counted(event):
            found |= dict.fromkeys(broken(leaf.contract, needed(leaf)))
        unbounded += [why] if (why := total(event).unbounded) is not None else []
    order = in_order(id for id, _ in found)
    said = [f"{id}: {why}" for id, why in sorted(found, key=lambda pair: order.index(pair[0]))]
    return tuple(dict.fromkeys([*said, *unbounded]))
