"""From an expected value of an audit case to the function that computes it.

A fact is a function of keyword-only inputs that answers one expected key. A table answers rows: the leading columns of
a row are its arguments, the others its answers. Both are registered here; inputs that a function does not have are not
ignored.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from accountant.selfcheck.numbers import NotANumberError, number, whole
from accountant.selfcheck.privacy import NotUnderstoodError

_F = TypeVar("_F", bound=Callable[..., Any])
_CONVERT: dict[Any, Callable[[Any], Any]] = {float: number, int: whole}
_DESCRIBING = frozenset({"cols", "columns", "note", "seed"})
"""Inputs that describe the others."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A registered table.

    Attributes:
        name: of its family.
        row: from the leading columns and the inputs to the other columns.
        arguments: how many columns lead.
        answers: how many follow.
    """

    name: str
    row: Callable[..., Sequence[Any]]
    arguments: int
    answers: int


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """An answer whose reference is the outcome of a simulation.

    Attributes:
        value: the answer.
        noise: how far the reference may be off by chance, on top of its tolerance.
    """

    value: float
    noise: float


_FACTS: dict[str, list[Callable[..., Any]]] = {}
_FACTS_OF_ROWS: dict[str, Callable[..., Any]] = {}
_FACTS_AT: list[tuple[re.Pattern[str], Callable[..., Any]]] = []
_TABLES: list[Table] = []
_ONLY_SHOWN: dict[str, str] = {}


def fact(*keys: str) -> Callable[[_F], _F]:
    """Register a function as the answer to expected keys."""

    def register(function: _F) -> _F:
        for key in keys:
            _FACTS.setdefault(key, []).append(function)
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


def table(name: str, *, answers: int) -> Callable[[_F], _F]:
    """Register a function as the rows of a family; its positional parameters are the leading columns."""

    def register(function: _F) -> _F:
        positional = [p for p in _parameters(function) if p.kind is not p.KEYWORD_ONLY]
        _TABLES.append(Table(name=name, row=function, arguments=len(positional), answers=answers))
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


def answer(key: str, inputs: Mapping[str, Any]) -> Any:
    """Return what a fact makes of the inputs.

    Raises:
        NotUnderstoodError: no fact answers the key from these inputs.
    """
    for function in _FACTS.get(key, ()):
        if _fits(function, inputs):
            return function(**_read(function, inputs))
    for pattern, function in _FACTS_AT:
        found = pattern.fullmatch(key)
        if found and _fits(function, inputs):
            return function(_rate(*found.groups()), **_read(function, inputs))
    raise NotUnderstoodError(f"no law for {key!r} from {', '.join(sorted(inputs)) or 'no inputs'}")


def answer_of_row(key: str, inputs: Mapping[str, Any]) -> Any:
    """Return what a fact makes of the inputs of a case and of a row together."""
    function = _FACTS_OF_ROWS[key]
    if not _fits(function, inputs):
        raise NotUnderstoodError(f"no law for {key!r} from {', '.join(sorted(inputs))}")
    return function(**_read(function, inputs))


def _rate(digits: str, unit: str | None) -> float:
    return float(number(digits.replace("_", ".")) / (100 if unit else 1))


def table_for(name: str, inputs: Mapping[str, Any], width: int) -> Table:
    """Return the table of a family: the one that the case's name begins with or holds, or the only one of its shape.

    Raises:
        NotUnderstoodError: there is none, or more than one.
    """
    shaped = [t for t in _TABLES if t.arguments + t.answers == width and _fits(t.row, inputs)]
    named = [t for t in shaped if t.name in name]
    found = sorted(named, key=lambda t: -len(t.name))[:1] or shaped
    if len(found) != 1:
        raise NotUnderstoodError(
            f"rows of {width} columns from {', '.join(sorted(inputs)) or 'no inputs'} are not known"
        )
    return found[0]


def row(found: Table, inputs: Mapping[str, Any], leading: Sequence[Any]) -> Sequence[Any]:
    """Return the answers of one row."""
    parameters = _parameters(found.row)
    try:
        read = [
            _CONVERT.get(p.annotation, _as_is)(value) for p, value in zip(parameters, leading, strict=False)
        ]
    except NotANumberError as error:
        raise NotUnderstoodError(str(error)) from None
    return found.row(*read, **_read(found.row, inputs))


def _read(function: Callable[..., Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of a function, each read as its type."""
    annotated = {p.name: p.annotation for p in _parameters(function)}
    try:
        return {
            name: _CONVERT.get(annotated[name], _as_is)(value) for name, value in _relevant(inputs).items()
        }
    except NotANumberError as error:
        raise NotUnderstoodError(str(error)) from None


def _as_is(value: Any) -> Any:
    return value


def _relevant(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name not in _DESCRIBING}


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function, eval_str=True).parameters.values())


def _fits(function: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    keywords = [p for p in _parameters(function) if p.kind is p.KEYWORD_ONLY]
    required = {p.name for p in keywords if p.default is p.empty}
    return required <= _relevant(inputs).keys() <= {p.name for p in keywords}
