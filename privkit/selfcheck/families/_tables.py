"""Expected rows: the leading columns of a row are the arguments of a function, the others its answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from accountant.selfcheck.privacy import NotUnderstoodError
from privkit.selfcheck.families import _inputs

_F = TypeVar("_F", bound=Callable[..., Any])


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

    def answer(self, leading: Sequence[Any], inputs: Mapping[str, Any]) -> list[Any]:
        """Return the answers of one row."""
        return list(_inputs.call(self.row, leading, inputs))


_TABLES: list[Table] = []


def table(name: str, *, answers: int) -> Callable[[_F], _F]:
    """Register a function as the rows of a family; its positional parameters are the leading columns."""

    def register(function: _F) -> _F:
        positional = [p for p in _inputs.parameters(function) if p.kind is not p.KEYWORD_ONLY]
        _TABLES.append(Table(name=name, row=function, arguments=len(positional), answers=answers))
        return function

    return register


def table_for(name: str, inputs: Mapping[str, Any], width: int) -> Table:
    """Return the table of a family: the one whose name a case's name holds, or the only one of its shape.

    Raises:
        NotUnderstoodError: there is none, or more than one.
    """
    shaped = [t for t in _TABLES if t.arguments + t.answers == width and _inputs.fits(t.row, inputs)]
    named = [t for t in shaped if t.name in name]
    found = sorted(named, key=lambda t: -len(t.name))[:1] or shaped
    if len(found) != 1:
        raise NotUnderstoodError(f"rows of {width} columns from {_inputs.named(inputs)} are not known")
    return found[0]
