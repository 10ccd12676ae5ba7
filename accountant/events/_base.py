"""What all events share: leaves with a contract, repetition, composition, and the one walk over them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from accountant import check
from accountant.contract import Contract


class UnsupportedEventError(ValueError):
    """An accountant met an event whose cost it does not know."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Anything that was released. Not used itself: see its subclasses."""


@dataclass(frozen=True, kw_only=True)
class Leaf(Event):
    """One mechanism, run once."""

    contract: Contract = field(default_factory=Contract)


@dataclass(frozen=True, kw_only=True)
class Repeated(Event):
    """The same event, ``count`` times, on the same data, with fresh noise each time."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        check.count(count=self.count)


@dataclass(frozen=True, kw_only=True)
class Composed(Event):
    """Several events on the same data; an empty composition costs nothing."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))


def leaves(event: Event) -> Iterator[tuple[Leaf, int]]:
    """Yield every leaf of an event with the number of times it ran.

    Raises:
        UnsupportedEventError: a part is no event.
        ValueError: a leaf ran more than 2^53 times.
    """
    if isinstance(event, Leaf):
        yield event, 1
    elif isinstance(event, Repeated):
        for leaf, times in leaves(event.event):
            check.count(count=times * event.count)
            yield leaf, times * event.count
    elif isinstance(event, Composed):
        for part in event.events:
            yield from leaves(part)
    else:
        raise UnsupportedEventError(f"{event!r} is no event this accountant knows; wrap its cost in PureDP.")


def counted(event: Event) -> dict[Leaf, int]:
    """Return each distinct leaf of an event with how often it ran in all: the only place that adds up.

    Raises:
        UnsupportedEventError: a part is no event.
        ValueError: a leaf ran more than 2^53 times.
    """
    total: Counter[Leaf] = Counter()
    for leaf, times in leaves(event):
        total[leaf] += times
        check.count(count=total[leaf])
    return dict(total)
