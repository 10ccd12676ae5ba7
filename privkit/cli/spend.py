"""``privkit spend``: epsilon per client and round, what is left of the budget, and how far it goes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from accountant.budget import Budget
    from privkit.spend import Holder
    from privkit.statement import Statement

_ROWS, _POINTS = 25, 1000
_BAR = 24  # characters
_NAMES = 4


def spend(
    run: list[Path] = typer.Option(
        [], "--run", help="A run, or a folder of runs, finished or not; give it once per silo."
    ),
    sigma: float | None = typer.Option(None, "--sigma", help="Instead of a run: a plain noise multiplier."),
    rounds: int = typer.Option(1, "--rounds", min=1, help="With --sigma: releases on the same data."),
    epsilon: float | None = typer.Option(
        None, "--epsilon", help="Budget of each client, in nats; by default the run's own, else its promise."
    ),
    delta: float | None = typer.Option(
        None, "--delta", help="Probability of failure, in (0, 1); by default the budget's, else 1e-5."
    ),
    adaptive: bool = typer.Option(
        False,
        "--adaptive",
        help="Noise or rounds were chosen from earlier outputs: count by a privacy filter.",
    ),
    shared: list[str] = typer.Option(
        [], "--shared", help="Clients that may hold the same records, as A,B: their costs add up."
    ),
    copied: int = typer.Option(1, "--copies", min=1, help="Times that one record is in every release."),
    as_json: bool = typer.Option(
        False, "--json", help="Print JSON with up to 1,000 rounds instead of a table."
    ),
) -> None:
    """Show what each client has spent after each round, what remains, and which round would exceed the budget."""
    from privkit.spend import held_in
    from privkit.statement import statement

    alone = [
        replace(holder, budget=_budget(holder, epsilon, delta, adaptive=adaptive))
        for holder in _released(run, sigma, rounds)
    ]
    found = held_in(alone, shared=[names.split(",") for names in shared], copied=copied)
    at, most = 1e-5 if delta is None else delta, _POINTS if as_json else _ROWS
    made = [
        statement(holder, delta=at if holder.budget is None else holder.budget.delta, most_rounds=most)
        for holder in found
    ]
    if as_json:
        import json

        typer.echo(json.dumps({"clients": [one.to_dict() for one in made]}, allow_nan=False))
    else:
        _show(made)


def _released(run: list[Path], sigma: float | None, rounds: int) -> "list[Holder]":
    """Return who spends: the clients of runs, or one imagined one."""
    from privkit.errors import InputError
    from privkit.spend import Holder, holders

    if bool(run) == (sigma is not None):
        raise InputError("give either --run or --sigma: what was released, or the noise that would be.")
    if sigma is None:
        return holders(run)
    from accountant.events import Gaussian

    release = Gaussian(noise_multiplier=sigma)
    return [Holder(run=f"sigma {sigma:g}", name="one client", by_round=(release,) * rounds, planned=rounds)]


def _budget(
    holder: "Holder", epsilon: float | None, delta: float | None, *, adaptive: bool
) -> "Budget | None":
    """Return the limit that was asked for, else the holder's own at its own delta."""
    from accountant.budget import Budget

    own = holder.budget
    if epsilon is not None:
        at = delta if delta is not None else own.delta if own is not None else 1e-5
        return Budget(epsilon=epsilon, delta=at, adaptive=adaptive or (own is not None and own.adaptive))
    if own is None or delta not in (None, own.delta):
        return None
    return replace(own, adaptive=adaptive or own.adaptive)


def _show(made: "list[Statement]") -> None:
    from rich.console import Console

    console = Console()
    for name, several in groupby(made, key=lambda one: one.holder.run):
        _show_run(console, name, list(several))


def _show_run(console: "Console", name: str, made: "list[Statement]") -> None:
    from rich.table import Table

    columns = list(_alike(made))
    first, done = made[0], max(one.done for one in made)
    of = f" of {first.holder.planned}" if first.holder.planned != done else ""
    table = Table(title=f"{name}: epsilon after {done}{of} rounds, delta {first.delta:g}")
    table.add_column("rounds", justify="right")
    for names, _ in columns:
        table.add_column(names, justify="right")
    table.add_column("")
    worst = max((one for _, one in columns), key=lambda one: one.spent)
    for t, epsilon in worst.curve:
        known = [dict(one.curve).get(t) for _, one in columns]
        table.add_row(str(t), *("" if e is None else f"{e:.4g}" for e in known), _bar(epsilon, worst))
    if worst.curve:
        console.print(table)
    for names, one in columns:
        console.print(f"{names}: {_summary(one)}", soft_wrap=True, highlight=False)
    stopped = next((one.holder.stopped for one in made if one.holder.stopped), "")
    if stopped:
        console.print(f"{stopped}; the ledger proves it.", soft_wrap=True, highlight=False)


def _alike(made: "list[Statement]") -> "Iterator[tuple[str, Statement]]":
    """Yield clients whose accounts are the same in one piece, with their names."""
    found: dict[object, list[Statement]] = {}
    for one in made:
        found.setdefault((one.curve, one.left, one.budget, one.method), []).append(one)
    for several in found.values():
        names = [one.holder.name for one in several]
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        yield ", ".join(names[:_NAMES]) + more, several[0]


def _bar(epsilon: float, worst: "Statement") -> str:
    """Return a bar as long as epsilon, in shares of the budget, or of what was spent in the end."""
    full = max(worst.spent, worst.budget.epsilon if worst.budget is not None else 0.0)
    if not 0 < full < float("inf"):
        return ""
    return "█" * round(_BAR * epsilon / full)


def _summary(one: "Statement") -> str:
    """Return one client's account in a sentence."""
    spent = f"spent {one.spent:.4g}"
    if one.budget is not None and one.remaining is not None:
        spent += f" of {one.budget.epsilon:g}, {one.remaining:.4g} left"
    promised = one.claim.unbounded
    parts = [
        spent,
        one.projection if promised is None else f"nothing is promised: {promised}",
        f"{one.method} ({one.bound.value}), {one.claim.relation.value}, {one.claim.unit}",
    ]
    return "; ".join(parts) + "."
