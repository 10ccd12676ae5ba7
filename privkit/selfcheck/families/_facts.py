"""Expected values by their key: a function of keyword-only inputs answers one or several keys."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from accountant.selfcheck.numbers import number
from accountant.selfcheck.privacy import NotUnderstoodError
from privkit.selfcheck.families import _inputs

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """An answer whose reference is the outcome of a simulation.

    Attributes:
        value: the answer.
        noise: how far the reference may be off by chance, on top of its tolerance.
    """

    value: float
    noise: float


_FACTS: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
_FACTS_OF_ROWS: dict[str, Callable[..., Any]] = {}
_FACTS_AT: list[tuple[re.Pattern[str], Callable[..., Any]]] = []
_ONLY_SHOWN: dict[str, str] = {}


def fact(*keys: str, family: str = "") -> Callable[[_F], _F]:
    """Register a function as the answer to expected keys; with a family, in cases whose name holds its name only."""

    def register(function: _F) -> _F:
        for key in keys:
            _FACTS.setdefault(key, []).append((family, function))
            _FACTS[key].sort(key=lambda pair: -len(pair[0]))
        return function

    return register


def fact_of_row(key: str) -> Callable[[_F], _F]:
    """Register a function as the answer to one column of rows that name their columns."""

    def register(function: _F) -> _F:
        _FACTS_OF_ROWS[key] = function
        return function

    return register


def fact_at(pattern: str) -> Callable[[_F], _F]:
    """Register a function of a rate, its first parameter, as the answer to keys that name one in per cent or decimals.

    ``tpr_at_5pct`` names 0.05, ``alpha_0_1pct`` names 0.001, ``tpr_at_fpr_0_1`` names 0.1.
    """

    def register(function: _F) -> _F:
        _FACTS_AT.append((re.compile(pattern), function))
        return function

    return register


def only_shown(*keys: str, because: str) -> None:
    """Declare expected keys that are understood and not compared."""
    _ONLY_SHOWN.update(dict.fromkeys(keys, because))


def why_only_shown(key: str) -> str | None:
    """Return why a key is not compared; None if it is."""
    return _ONLY_SHOWN.get(key)


def answers_rows(key: str) -> bool:
    """Return whether a column of named rows is an answer; else it is given."""
    return key in _FACTS_OF_ROWS or key in _ONLY_SHOWN


def answer(key: str, inputs: Mapping[str, Any], *, name: str) -> Any:
    """Return what a fact makes of the inputs of a case with a name.

    Raises:
        NotUnderstoodError: no fact answers the key from these inputs.
    """
    for family, function in _FACTS.get(key, ()):
        if family in name and _inputs.fits(function, inputs):
            return _inputs.call(function, (), inputs)
    for pattern, function in _FACTS_AT:
        found = pattern.fullmatch(key)
        if found and _inputs.fits(function, inputs):
            return _inputs.call(function, (_rate(*found.groups()),), inputs)
    raise NotUnderstoodError(f"no law for {key!r} from {_inputs.named(inputs)}")


def answer_of_row(key: str, inputs: Mapping[str, Any]) -> Any:
    """Return what a fact makes of the inputs of a case and of a row together."""
    if not _inputs.fits(_FACTS_OF_ROWS[key], inputs):
        raise NotUnderstoodError(f"no law for {key!r} from {_inputs.named(inputs)}")
    return _inputs.call(_FACTS_OF_ROWS[key], (), inputs)


def _rate(digits: str, unit: str | None) -> float:
    return number(digits.replace("_", ".")) / (100 if unit else 1)
