"""Events as plain values that JSON can hold, and back."""

from dataclasses import fields
from enum import StrEnum
from typing import Any

from accountant.contract import Contract
from accountant.events._base import Composed, Event, Repeated, UnsupportedEventError
from accountant.events.gaussian import Gaussian, GroupGaussian, clip_set
from accountant.events.generic import ApproximateDP, BoundedRange, NonPrivate, PureDP
from accountant.events.subsampled import SubsampledGaussian
from accountant.events.topk import ExponentialTopK, GaussianTopK, GumbelTopK, LaplaceTopK

_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Gaussian,
        GroupGaussian,
        LaplaceTopK,
        ExponentialTopK,
        GumbelTopK,
        GaussianTopK,
        SubsampledGaussian,
        PureDP,
        ApproximateDP,
        BoundedRange,
        NonPrivate,
        Repeated,
        Composed,
    )
}


def to_dict(event: Event) -> dict[str, Any]:
    """Return an event as plain values that JSON can hold; :func:`from_dict` reads them back.

    A field at its default is left out, so that a field added later does not change what is on record.
    """
    if _KINDS.get(type(event).__name__) is not type(event):
        raise UnsupportedEventError(f"{event!r} is not an event that can be written down.")
    plain: dict[str, Any] = {"event": type(event).__name__}
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, Contract):
            plain[field.name] = value.to_dict()
        elif field.name == "event":
            plain["inner"] = to_dict(value)
        elif field.name == "events":
            plain[field.name] = [to_dict(part) for part in value]
        elif value != field.default:
            plain[field.name] = _value(value)
    return plain


def _value(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def from_dict(plain: dict[str, Any]) -> Event:
    """Read what :func:`to_dict` wrote; an unknown kind or field is refused."""
    if not isinstance(plain, dict):
        raise UnsupportedEventError(f"{plain!r} is not an event that was written down; give an object.")
    named = dict(plain)
    kind = _KINDS.get(str(named.pop("event", "")))
    if kind is None:
        raise UnsupportedEventError(
            f"event {plain.get('event')!r} is unknown; known are {', '.join(_KINDS)}."
        )
    if "contract" in named:
        named["contract"] = Contract.from_dict(_kind(named["contract"], "contract", dict))
    if kind is Repeated and "inner" in named:
        named["event"] = from_dict(named.pop("inner"))
    for name in ("noise_multipliers", "sizes", "clip_norms"):
        if isinstance(named.get(name), list):
            named[name] = tuple(named[name])
    if "clip" in named:
        named["clip"] = clip_set(named["clip"])
    if "events" in named:
        named["events"] = tuple(from_dict(part) for part in _kind(named["events"], "events", list | tuple))
    try:
        return kind(**named)
    except TypeError as error:
        why = str(error).rstrip(".")
        raise UnsupportedEventError(f"event {plain!r} does not fit {kind.__name__}: {why}.") from None


def _kind(value: Any, name: str, wanted: Any) -> Any:
    """Return a value of a kind that JSON knows, or refuse it."""
    if not isinstance(value, wanted):
        raise UnsupportedEventError(f"{name}={value!r} is no part of an event; was it edited by hand?")
    return value
