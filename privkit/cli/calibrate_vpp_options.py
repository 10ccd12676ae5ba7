"""``privkit calibrate vpp --optimise``: what every private selection finds, and what leaving it out saves."""

from typing import TYPE_CHECKING, Any

import typer

from accountant.rounded import rounded_up

if TYPE_CHECKING:
    from accountant.groupwise import Allocation
    from accountant.vpp_budget import Plan, Reached


def show(
    budget: dict[str, Any],
    *,
    split: float,
    allocation: "Allocation",
    score_bound: float,
    overlap: float | None,
    as_json: bool,
) -> None:
    """Print every way to select at a budget, and the least noise beside one that finds what is wanted."""
    from accountant.vpp_budget import least_noise, plan

    found = plan(**budget, split=split, allocation=allocation)
    reached = None if overlap is None else least_noise(overlap, **budget, allocation=allocation)
    if as_json:
        import json

        document = (
            budget | {"split": split, "dim": allocation.dim, "k": allocation.sizes[0]} | found.to_dict()
        )
        if overlap is not None:
            document |= {"overlap": overlap, "least_noise": reached and reached.to_dict()}
        typer.echo(json.dumps(document, allow_nan=False))
        return
    _show_options(found, score_bound)
    if overlap is not None:
        typer.echo(_wanted(overlap, reached))
    typer.echo(found.advice)


def _show_options(found: "Plan", score_bound: float) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    from accountant.vpp_budget import times

    budget = found.budget
    title = (
        f"Selections beside sigma_ref {rounded_up(budget.sigma, digits=5)} (the paper's split, {budget.split:g}) "
        f"at epsilon {budget.epsilon:g}, delta {budget.delta:g}"
    )
    table = Table(title=title, box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("noise on a score")
    for heading in ("runs", "scale", "std / H", "overlap"):
        table.add_column(heading, justify="right")
    for option in found.options:
        table.add_row(
            option.kind.name,
            times(option.selections),
            _short(option.scale * score_bound),
            _short(option.std),
            f"{option.fidelity.expected_overlap:.5f}",
        )
    table.add_row("none, a random partition", "", "", "", f"{found.best.fidelity.chance:.5f}")
    Console().print(table)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _wanted(overlap: float, reached: "Reached | None") -> str:
    from accountant.vpp_budget import times

    if reached is None:
        return f"overlap {overlap:g}: every selection that reaches it spends the whole budget"
    option = reached.option
    return (
        f"overlap {overlap:g}: {option.kind.name} noise, std {_short(option.std)} H, {times(option.selections)}, "
        f"beside sigma_ref {rounded_up(reached.sigma, digits=5)}; that takes {reached.split:.3g} of epsilon, "
        f"and the release has {reached.energy:.3g} times the noise energy of isotropic noise without a selection"
    )
