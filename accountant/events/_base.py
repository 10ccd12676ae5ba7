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


def keep_positive(event: Event, *names: str) -> None:
    """Store some fields of a new event as plain floats, each finite and above 0; refuse others by name."""
    for name in names:
        check.positive(**{name: getattr(event, name)})
        object.__setattr__(event, name, float(getattr(event, name)))


def keep_counts(event: Event, *names: str) -> None:
    """Store some fields of a new event as plain whole numbers of at least 1; refuse others by name."""
    for name in names:
        check.count(**{name: getattr(event, name)})
        object.__setattr__(event, name, int(getattr(event, name)))


@dataclass(frozen=True, kw_only=True)
class Repeated(Event):
    """The same event, ``count`` times, on the same data, with fresh noise each time."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        keep_counts(self, "count")


@dataclass(frozen=True, kw_only=True)
class Composed(Event):
    """Several events on the same data; an empty composition costs nothing."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        if isinstance(self.events, Event):
            raise ValueError(f"events={self.events!r} is one event; give a tuple of them.")  # noqa: TRY004
        object.__setattr__(self, "events", tuple(self.events))


def leaves(event: Event) -> Iterator[tuple[Leaf, int]]:
    """Yield every leaf of an event with the number of times it ran.

    Raises:
        UnsupportedEventError: a part is no event.
        ValueError: a leaf ran more than 2^53 times.
    """
    waiting = [(event, 1)]  # a stack of our own: however deep events are nested, they are walked
    while waiting:
        part, times = waiting.pop()
        if isinstance(part, Leaf):
            check.count(count=times)
            yield part, times
        elif isinstance(part, Repeated):
            waiting.append((part.event, times * part.count))
        elif isinstance(part, Composed):
            waiting.extend((inner, times) for inner in reversed(part.events))
        else:
            raise UnsupportedEventError(
                f"{part!r} is no event this accountant knows; wrap its cost in PureDP."
            )


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


def merged(event: Event) -> Composed:
    """Return the same releases with each distinct leaf once: as cheap to walk again as there are distinct ones.

    Raises:
        UnsupportedEventError: a part is no event.
        ValueError: a leaf ran more than 2^53 times.
    """
    return Composed(events=tuple(Repeated(event=leaf, count=n) for leaf, n in counted(event).items()))
