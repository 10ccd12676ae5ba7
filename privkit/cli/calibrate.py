"""``privkit calibrate``: how much noise a budget needs, by every method in use, side by side."""

from typing import TYPE_CHECKING, Any

import typer

from accountant.rounded import rounded_up
from privkit.cli import calibrate_dpsgd, calibrate_target, calibrate_vpp
from privkit.cli.plain_help import PlainCommand

if TYPE_CHECKING:
    from accountant.comparison import Calibration
    from accountant.target import EpsilonDelta

app = typer.Typer(no_args_is_help=True, help="How much noise a budget needs over T rounds.")
app.command("vpp", cls=PlainCommand)(calibrate_vpp.vpp)
app.command("dpsgd", cls=PlainCommand)(calibrate_dpsgd.dpsgd)


@app.command("gaussian", cls=PlainCommand)
@app.command("igpp", cls=PlainCommand)
def gaussian(
    epsilon: float | None = typer.Option(None, "--epsilon", help="Target: privacy loss, in nats, above 0."),
    delta: float = typer.Option(1e-5, "--delta", help="Probability of failure, in (0, 1)."),
    mu: float | None = typer.Option(None, "--mu", help="Target: mu of Gaussian DP, above 0."),
    advantage: float | None = typer.Option(
        None, "--advantage", help="Target: largest TPR - FPR of an attack, in (0, 1)."
    ),
    tpr: float | None = typer.Option(None, "--tpr", help="Target: largest TPR of an attack, at --fpr."),
    fpr: float | None = typer.Option(None, "--fpr", help="The FPR of --tpr, in (0, tpr)."),
    auc: float | None = typer.Option(None, "--auc", help="Target: largest AUC of an attack, in (0.5, 1)."),
    rounds: int | None = typer.Option(
        None, "--rounds", help="Releases on the same data, at least 1; 1 by default."
    ),
    sigma: float | None = typer.Option(
        None, "--sigma", help="Instead of --rounds: how many releases this noise allows."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    with_pld: bool = typer.Option(False, "--pld", help="Ask dp-accounting's PLD too; takes seconds."),
) -> None:
    """Gaussian noise, by every method in use.

    The noise multiplier sigma is its standard deviation / l2 sensitivity (2R/n for IGPP's class means).
    """
    from accountant import check
    from accountant.target import EpsilonDelta
    from privkit.errors import InputError

    check.open_unit(delta=delta)
    target = calibrate_target.chosen(
        epsilon=epsilon, delta=delta, mu=mu, advantage=advantage, tpr=tpr, fpr=fpr, auc=auc
    )
    if sigma is not None and rounds is not None:
        raise InputError(
            f"--sigma {sigma:g} and --rounds {rounds} leave nothing to solve for; give one of them."
        )
    times = 1 if rounds is None else rounds
    if isinstance(target, EpsilonDelta) and sigma is None:
        _compare(target, times, as_json=as_json, with_pld=with_pld)
        return
    if with_pld:
        raise InputError("--pld compares methods for --epsilon with --rounds; leave it out here.")
    calibrate_target.show(target, delta=delta, rounds=times, sigma=sigma, as_json=as_json)


def _compare(target: "EpsilonDelta", rounds: int, *, as_json: bool, with_pld: bool) -> None:
    """Print what every method in use makes of an epsilon and delta."""
    from accountant.comparison import calibrations

    rows = calibrations(epsilon=target.epsilon, delta=target.delta, rounds=rounds, with_pld=with_pld)
    if as_json:
        import json

        typer.echo(json.dumps(_document(rows, target.epsilon, target.delta, rounds), allow_nan=False))
    else:
        _show(rows, target.epsilon, target.delta, rounds)


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
    from accountant.comparison import percent

    if row.sigma is None:
        return ("n/a", "", "", "")
    return (
        rounded_up(row.sigma),
        percent(row.excess_percent or 0.0, "+.2f"),
        f"{row.true_epsilon:.6g}",
        "yes" if row.valid else "NO",
    )
