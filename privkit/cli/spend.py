"""``privkit spend``: epsilon per client and round, what is left of the budget, and how far it goes."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from accountant.budget import Budget
    from privkit.spend import Holder

_ROWS, _POINTS = 25, 1000


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
    """Show what each client has spent, and what remains. After each round; also which one would exceed the budget.

    It reads ledgers and judges nothing: it ends with code 0 even where a budget is exceeded.
    """
    from privkit.cli.listed import names
    from privkit.spend import held_in
    from privkit.statement import statement

    alone = [
        replace(holder, budget=_budget(holder, epsilon, delta, adaptive=adaptive))
        for holder in _released(run, sigma, rounds)
    ]
    groups = [names([text], option="--shared", kind="client") for text in shared]
    found = held_in(alone, shared=groups, copied=copied)
    at, most = 1e-5 if delta is None else delta, _POINTS if as_json else _ROWS
    made = [
        statement(holder, delta=at if holder.budget is None else holder.budget.delta, most_rounds=most)
        for holder in found
    ]
    if as_json:
        import json

        typer.echo(json.dumps({"clients": [one.to_dict() for one in made]}, allow_nan=False))
    else:
        from privkit.cli.spend_table import show

        show(made, recorded=bool(run))


def _released(run: list[Path], sigma: float | None, rounds: int) -> "list[Holder]":
    """Return who spends: the clients of runs, or one imagined one."""
    from privkit.errors import InputError
    from privkit.spend import Holder, holders

    if bool(run) == (sigma is not None):
        raise InputError("give either --run or --sigma: what was released, or the noise that would be.")
    if sigma is None:
        return holders(run)
    from accountant.contract import Contract, Counts, DependsOn
    from accountant.events import Gaussian

    kept = Contract(
        clip_norm=1.0,
        encoder=DependsOn.PUBLIC,
        assignment=DependsOn.PUBLIC,
        counts=Counts.PUBLIC,
        hyperparameters=DependsOn.PUBLIC,
        fresh_noise=True,
    )
    release = Gaussian(noise_multiplier=sigma, contract=kept)
    return [Holder(run=f"sigma {sigma:g}", name="one client", by_round=(release,) * rounds, planned=rounds)]


def _budget(
    holder: "Holder", epsilon: float | None, delta: float | None, *, adaptive: bool
) -> "Budget | None":
    """Return the limit that was asked for, else the holder's own at its own delta."""
    from accountant.budget import Budget
    from privkit.errors import InputError

    own = holder.budget
    if epsilon is not None:
        at = delta if delta is not None else own.delta if own is not None else 1e-5
        return Budget(epsilon=epsilon, delta=at, adaptive=adaptive or (own is not None and own.adaptive))
    if own is None or delta not in (None, own.delta):
        if adaptive:
            raise InputError("--adaptive is about a budget, and there is none at this delta; give --epsilon.")
        return None
    return replace(own, adaptive=adaptive or own.adaptive)
