"""What happened: one frozen value per kind of release.

An event documents a mechanism completely enough that an accountant needs nothing else. Classes are
never removed and their numbers never change meaning; new behaviour is a new class. Accountants give
the cost of ONE leaf; only :func:`leaves` multiplies and adds, so that no accountant can forget a count
(spec: dp-accounting's RDP accountant once did).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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
class Gaussian(Leaf):
    """Isotropic Gaussian noise on a vector-valued query.

    Attributes:
        noise_multiplier: noise standard deviation / l2 sensitivity under the contract's relation; > 0.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        check.positive(noise_multiplier=self.noise_multiplier)


@dataclass(frozen=True, kw_only=True)
class GroupGaussian(Leaf):
    """Gaussian noise with one level per group of coordinates, each group clipped to its own ball.

    One record can move every group by its full sensitivity at once, so the cost is that of a single
    Gaussian with ``1/sigma^2 = sum_g 1/sigma_g^2``, attained (VPDR, Eq. 19).

    Attributes:
        noise_multipliers: per group, noise standard deviation / l2 sensitivity of that group; no unit, > 0.
        sizes: per group, its number of coordinates, at least 1; empty when not declared.
        clip_norms: per group, largest l2 norm of one record on it, > 0; empty when not declared.
    """

    noise_multipliers: tuple[float, ...]
    sizes: tuple[int, ...] = ()
    clip_norms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.noise_multipliers:
            raise ValueError("noise_multipliers is empty; give one number per group.")
        for name in ("noise_multipliers", "sizes", "clip_norms"):
            values = tuple(getattr(self, name))
            object.__setattr__(self, name, values)
            if values and len(values) != len(self.noise_multipliers):
                raise ValueError(
                    f"{name}={values} for {len(self.noise_multipliers)} groups; give one number per group."
                )
        for sigma in self.noise_multipliers:
            check.positive(noise_multiplier=sigma)
        for size in self.sizes:
            check.count(size=size)
        for norm in self.clip_norms:
            check.positive(clip_norm=norm)


@dataclass(frozen=True, kw_only=True)
class PureDP(Leaf):
    """Any mechanism that is (epsilon, 0)-differentially private.

    Attributes:
        epsilon: its guarantee, in nats, > 0.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon)


@dataclass(frozen=True, kw_only=True)
class NonPrivate(Leaf):
    """A release with no noise: it promises nothing, and every accountant says so.

    Attributes:
        reason: why, in words.
    """

    reason: str = "released without noise"


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
    """Yield every leaf of an event with the number of times it ran."""
    if isinstance(event, Leaf):
        yield event, 1
    elif isinstance(event, Repeated):
        yield from ((leaf, n * event.count) for leaf, n in leaves(event.event))
    elif isinstance(event, Composed):
        for part in event.events:
            yield from leaves(part)
    else:
        raise UnsupportedEventError(f"{event!r} is no event this accountant knows; wrap its cost in PureDP.")


_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind for kind in (Gaussian, GroupGaussian, PureDP, NonPrivate, Repeated, Composed)
}


def to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain values that JSON can hold; :func:`from_dict` reads them back."""
    if _KINDS.get(type(event).__name__) is not type(event):
        raise UnsupportedEventError(f"{event!r} is not an event that can be written down.")
    plain: dict[str, Any] = {"event": type(event).__name__}
    for name, value in vars(event).items():
        if isinstance(value, Contract):
            plain[name] = value.to_dict()
        elif isinstance(value, Event):
            plain["inner"] = to_dict(value)
        elif name == "events":
            plain[name] = [to_dict(part) for part in value]
        else:
            plain[name] = list(value) if isinstance(value, tuple) else value
    return plain


def from_dict(plain: dict[str, Any]) -> Event:
    """Read what :func:`to_dict` wrote; an unknown kind or field is refused."""
    named = dict(plain)
    kind = _KINDS.get(named.pop("event", ""))
    if kind is None:
        raise UnsupportedEventError(
            f"event {plain.get('event')!r} is unknown; known are {', '.join(_KINDS)}."
        )
    if "contract" in named:
        named["contract"] = Contract.from_dict(named["contract"])
    if kind is Repeated:
        named["event"] = from_dict(named.pop("inner"))
    for name in ("noise_multipliers", "sizes", "clip_norms"):
        if isinstance(named.get(name), list):
            named[name] = tuple(named[name])
    if "events" in named:
        named["events"] = tuple(from_dict(part) for part in named["events"])
    try:
        return kind(**named)
    except TypeError as error:
        raise UnsupportedEventError(f"event {plain!r} does not fit {kind.__name__}: {error}.") from None
