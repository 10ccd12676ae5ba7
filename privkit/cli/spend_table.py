"""How ``privkit spend`` looks: one block for all runs of a cell that spent the same, short where there are many."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from privkit.spend import Holder
    from privkit.statement import Statement

_BAR = 24  # characters
_NAMES = 4
_MOST_TABLES = 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """Runs of one cell whose clients spent the same, round by round.

    Attributes:
        title: the cell, and its seeds if it has any.
        columns: names of clients whose accounts are the same in one piece, and that account.
        stopped: sentences that runs ended early.
    """

    title: str
    columns: list[tuple[str, "Statement"]]
    stopped: list[str]


def show(made: "Sequence[Statement]", *, recorded: bool) -> None:
    """Print accounts: with their curves if they are few, else a line for each.

    Args:
        made: one account per client.
        recorded: whether they were counted from ledgers.
    """
    from rich.console import Console

    console, found = Console(), list(blocks(made))
    for block in found:
        if len(found) <= _MOST_TABLES:
            _show_curve(console, block)
        for names, one in block.columns:
            where = f"{block.title}: " if len(found) > _MOST_TABLES else ""
            console.print(f"{where}{names}: {_summary(one)}", soft_wrap=True, highlight=False)
        for sentence in block.stopped:
            console.print(f"{sentence}; the ledger's releases prove it.", soft_wrap=True, highlight=False)
    if len(found) > _MOST_TABLES:
        console.print("Give --run one of them for its curve.", highlight=False)
    if recorded:
        console.print(
            "Counted from ledgers alone; privkit audit holds the messages against them.", highlight=False
        )


def blocks(made: "Sequence[Statement]") -> Iterator[Block]:
    """Yield the blocks of some accounts, in the order of their first runs."""
    runs: dict[str, list[Statement]] = {}
    for one in made:
        runs.setdefault(one.holder.run, []).append(one)
    alike: dict[object, list[list[Statement]]] = {}
    for several in runs.values():
        key = (several[0].holder.cell, *((one.holder.name, _account(one)) for one in several))
        alike.setdefault(key, []).append(several)
    for same in alike.values():
        firsts = [several[0].holder for several in same]
        stopped = dict.fromkeys(one.holder.stopped for several in same for one in several)
        yield Block(title=_title(firsts), columns=list(_columns(same[0])), stopped=[s for s in stopped if s])


def _account(one: "Statement") -> object:
    """Return what two accounts must share to be shown once."""
    return one.curve, one.left, one.budget, one.delta, one.method, one.holder.planned, _broken(one)


def _broken(one: "Statement") -> tuple[str, ...]:
    """Return which assumptions make an epsilon no promise; none where there is no epsilon anyway."""
    return () if one.claim.unbounded else tuple(dict.fromkeys(found.id for found in one.claim.broken))


def _title(holders: "Sequence[Holder]") -> str:
    seeds = sorted(holder.seed for holder in holders if holder.seed is not None)
    if not seeds:
        return ", ".join(holder.run for holder in holders)
    joined = f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else str(seeds[0])
    if seeds != list(range(seeds[0], seeds[-1] + 1)):
        joined = ", ".join(map(str, seeds))
    return f"{holders[0].cell}, seed{'s' * (len(seeds) > 1)} {joined}"


def _columns(made: "Sequence[Statement]") -> "Iterator[tuple[str, Statement]]":
    """Yield clients whose accounts are the same in one piece, with their names."""
    found: dict[object, list[Statement]] = {}
    for one in made:
        found.setdefault(_account(one), []).append(one)
    for several in found.values():
        names = [one.holder.name for one in several]
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        yield ", ".join(names[:_NAMES]) + more, several[0]


def _show_curve(console: "Console", block: Block) -> None:
    worst = max((one for _, one in block.columns), key=lambda one: one.spent)
    if worst.curve:
        console.print(_curve(block, worst))


def _curve(block: Block, worst: "Statement") -> "Table":
    from rich.table import Table

    done = max(one.done for _, one in block.columns)
    of = f" of {worst.holder.planned}" if worst.holder.planned != done else ""
    table = Table(title=f"{block.title}: epsilon after {done}{of} rounds, delta {worst.delta:g}")
    table.add_column("rounds", justify="right")
    for names, _ in block.columns:
        table.add_column(names, justify="right")
    table.add_column("")
    curves = [dict(one.curve) for _, one in block.columns]
    for t, epsilon in worst.curve:
        known = [
            "" if t not in curve else _number(curve[t], one)
            for curve, (_, one) in zip(curves, block.columns, strict=True)
        ]
        table.add_row(str(t), *known, _bar(epsilon, worst))
    return table


def _number(epsilon: float, one: "Statement") -> str:
    """Return an epsilon, in brackets where an assumption is broken, so that it is no promise."""
    return f"({epsilon:.4g})" if _broken(one) else f"{epsilon:.4g}"


def _bar(epsilon: float, worst: "Statement") -> str:
    """Return a bar as long as epsilon, in shares of the budget, or of what was spent in the end."""
    full = max(worst.spent, worst.budget.epsilon if worst.budget is not None else 0.0)
    if not 0 < full < float("inf"):
        return ""
    return "█" * round(_BAR * epsilon / full)


def _summary(one: "Statement") -> str:
    """Return one client's account in a sentence."""
    spent = f"spent {_number(one.spent, one)}"
    if one.budget is not None and one.remaining is not None:
        spent += f" of {one.budget.epsilon:g}, {one.remaining:.4g} left"
    promised = one.claim.unbounded
    parts = [
        spent,
        one.projection if promised is None else f"nothing is promised: {promised}",
        f"{one.bound.of(one.method)}; {one.claim.relation.value}, {one.claim.unit}",
    ]
    broken = _broken(one)
    if broken:
        verb = "are" if len(broken) > 1 else "is"
        parts.append(f"no promise: {', '.join(broken)} {verb} broken, see privkit audit")
    return "; ".join(parts) + "."
