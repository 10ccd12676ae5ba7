"""``privkit calibrate``: how much noise a budget needs, by every method in use, side by side."""

from typing import TYPE_CHECKING, Any

import typer

from privkit.cli import calibrate_vpp

if TYPE_CHECKING:
    from accountant.comparison import Calibration

app = typer.Typer(no_args_is_help=True, help="How much noise a budget needs over T rounds.")
app.command("vpp")(calibrate_vpp.vpp)


@app.command("gaussian")
@app.command("igpp")
def gaussian(
    epsilon: float = typer.Option(..., "--epsilon", help="Total privacy loss, in nats, above 0."),
    delta: float = typer.Option(..., "--delta", help="Total probability of failure, in (0, 1)."),
    rounds: int = typer.Option(1, "--rounds", help="Releases on the same data, at least 1."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    with_pld: bool = typer.Option(False, "--pld", help="Ask dp-accounting's PLD too; takes seconds."),
) -> None:
    """Gaussian noise: sigma is its standard deviation / l2 sensitivity (2R/n for IGPP's class means)."""
    from accountant.comparison import calibrations

    rows = calibrations(epsilon=epsilon, delta=delta, rounds=rounds, with_pld=with_pld)
    if as_json:
        import json

        typer.echo(json.dumps(_document(rows, epsilon, delta, rounds), allow_nan=False))
    else:
        _show(rows, epsilon, delta, rounds)


def _document(rows: "tuple[Calibration, ...]", epsilon: float, delta: float, rounds: int) -> dict[str, Any]:
    from accountant.bound import Bound
    from accountant.contract import Contract

    contract = Contract()
    return {
        "sigma": rows[0].sigma,
        "epsilon": epsilon,
        "delta": delta,
        "rounds": rounds,
        "relation": contract.relation.value,
        "unit": contract.unit,
        "method": rows[0].method,
        "bound": Bound.EXACT.value,
        "methods": [row.to_dict() for row in rows],
    }


def _show(rows: "tuple[Calibration, ...]", epsilon: float, delta: float, rounds: int) -> None:
    from rich.console import Console
    from rich.table import Table

    plural = "release" if rounds == 1 else "releases"
    table = Table(title=f"Gaussian noise for epsilon {epsilon:g}, delta {delta:g}, {rounds:,} {plural}")
    table.add_column("method")
    for heading in ("sigma", "vs exact", "true epsilon", "valid"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row.method, *_cells(row))
    console = Console()
    console.print(table)
    for row in rows:
        if row.reason:
            console.print(f"{row.method}: {row.reason}", soft_wrap=True, highlight=False)


def _cells(row: "Calibration") -> tuple[str, ...]:
    if row.sigma is None:
        return ("n/a", "", "", "")
    return (
        f"{row.sigma:.6g}",
        f"{row.excess_percent:+.2f} %",
        f"{row.true_epsilon:.6g}",
        "yes" if row.valid else "NO",
    )
