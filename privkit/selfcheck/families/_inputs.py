"""How the inputs of an audit case become arguments."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accountant.selfcheck.numbers import NotANumberError, number, whole
from accountant.selfcheck.privacy import NotUnderstoodError

_CONVERT: dict[Any, Callable[[Any], Any]] = {float: number, int: whole}
_DESCRIBING = frozenset({"cols", "columns", "note", "seed"})
"""Inputs that describe the others."""


def fits(function: Callable[..., Any], inputs: Mapping[str, Any]) -> bool:
    """Return whether the inputs are a function's keyword-only parameters, all that it needs and no others."""
    keywords = [p for p in parameters(function) if p.kind is p.KEYWORD_ONLY]
    required = {p.name for p in keywords if p.default is p.empty}
    return required <= _relevant(inputs).keys() <= {p.name for p in keywords}


def call(function: Callable[..., Any], leading: Sequence[Any], inputs: Mapping[str, Any]) -> Any:
    """Return a function of its leading parameters and of the inputs, each read as its type."""
    known = parameters(function)
    annotated = {p.name: p.annotation for p in known}
    try:
        first = [_read(p.annotation, value) for p, value in zip(known, leading, strict=False)]
        named = {name: _read(annotated[name], value) for name, value in _relevant(inputs).items()}
    except NotANumberError as error:
        raise NotUnderstoodError(str(error)) from None
    return function(*first, **named)


def parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters of a function, their types resolved."""
    return list(inspect.signature(function, eval_str=True).parameters.values())


def named(inputs: Mapping[str, Any]) -> str:
    """Return the names of the inputs, in words."""
    return ", ".join(sorted(inputs)) or "no inputs"


def _read(annotation: Any, value: Any) -> Any:
    return _CONVERT[annotation](value) if annotation in _CONVERT else value


def _relevant(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in inputs.items() if name not in _DESCRIBING}
