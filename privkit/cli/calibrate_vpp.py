"""``privkit calibrate vpp``: VPP's noise and selection by every method, and what the selection is worth."""

from typing import TYPE_CHECKING, Any

import typer

from accountant.rounded import rounded_up
from privkit.cli import calibrate_vpp_options

if TYPE_CHECKING:
    from accountant.groupwise import Allocation
    from accountant.selection import Fidelity
    from accountant.vpp_comparison import VppCalibration


_MOST_COORDINATES = 1_000_000


def vpp(
    epsilon: float = typer.Option(..., "--epsilon", help="Total privacy loss, in nats, above 0."),
    delta: float = typer.Option(1e-5, "--delta", help="Total probability of failure, in (0, 1)."),
    rounds: int = typer.Option(1, "--rounds", help="Releases on the same data, at least 1."),
    dim: int = typer.Option(..., "--dim", help="Coordinates of a prototype, 2 to 1,000,000."),
    rho: float = typer.Option(0.2, "--rho", help="Share of coordinates that is selected, in (0, 0.5]."),
    split: float = typer.Option(0.1, "--split", help="Share of epsilon for selecting them, in (0, 1)."),
    score_bound: float = typer.Option(0.1, "--score-bound", help="H, what scores are clipped to, above 0."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
    with_pld: bool = typer.Option(False, "--pld", help="Ask dp-accounting's PLD too; takes seconds."),
    optimise: bool = typer.Option(
        False,
        "--optimise",
        help="Instead: every private selection at this budget, and what leaving it out saves.",
    ),
    overlap: float | None = typer.Option(
        None, "--overlap", help="With --optimise: share of the true set that is wanted, above rho."
    ),
) -> None:
    """Noise of VPP's two groups.

    The noise multiplier sigma_ref is that of the isotropic release that costs as much as both.
    """
    from accountant import check, selection
    from accountant.comparison import refuse_huge
    from accountant.groupwise import Allocation
    from accountant.vpp_comparison import vpp_calibrations
    from privkit.errors import InputError

    refuse_huge(epsilon)
    check.positive(score_bound=score_bound)
    check.open_unit(delta=delta, split=split)
    check.count(rounds=rounds)
    if dim > _MOST_COORDINATES:
        raise InputError(f"--dim {dim} is more than a prototype has; give at most {_MOST_COORDINATES:,}.")
    allocation = Allocation.of(dim=dim, rho=rho)
    if overlap is not None and not optimise:
        raise InputError(f"--overlap {overlap:g} is used by --optimise; add that, or leave it out.")
    if optimise:
        budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds}
        calibrate_vpp_options.show(
            budget,
            split=split,
            allocation=allocation,
            score_bound=score_bound,
            overlap=overlap,
            as_json=as_json,
        )
        return
    k = allocation.sizes[0]
    over_range = selection.scale(k=k, score_bound=1.0, epsilon_total=split * epsilon, rounds=rounds)
    budget = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "split": split}
    rows = vpp_calibrations(
        **budget, allocation=allocation, scale=over_range * score_bound, with_pld=with_pld
    )
    fidelity = selection.fidelity(dim=dim, k=k, scale_over_range=over_range)
    if as_json:
        import json

        document = _noise(rows[0], allocation, over_range) | _budget(budget) | _judged(rows, fidelity)
        typer.echo(json.dumps(document | {"rho": rho}, allow_nan=False))
    else:
        _show(rows, allocation, fidelity, budget)


def _noise(best: "VppCalibration", allocation: "Allocation", over_range: float) -> dict[str, Any]:
    plain = best.to_dict()
    on_a, on_b = allocation.noise_ratios
    return {
        "sigma": plain["sigma_ref"],
        **{name: plain[name] for name in ("sigma_ref", "sigma_A", "sigma_B", "lambda")},
        "lambda_over_score_bound": over_range,
        "dim": allocation.dim,
        "k": allocation.sizes[0],
        "kappas": list(allocation.kappas),
        "weights": list(allocation.weights),
        "noise_vs_isotropic": {"A": on_a, "B": on_b, "energy": allocation.energy_ratio},
    }


def _budget(budget: dict[str, Any]) -> dict[str, Any]:
    selecting = budget["split"] * budget["epsilon"]
    return {
        **budget,
        "epsilon1": selecting,
        "epsilon2": (1 - budget["split"]) * budget["epsilon"],
        "epsilon_per_round_selection": selecting / budget["rounds"],
    }


def _judged(rows: "tuple[VppCalibration, ...]", fidelity: "Fidelity") -> dict[str, Any]:
    from accountant.bound import Bound
    from accountant.contract import Contract

    contract = Contract()
    return {
        "fidelity": {
            "expected_overlap": fidelity.expected_overlap,
            "chance": fidelity.chance,
            "note": fidelity.note,
        },
        "relation": contract.relation.value,
        "unit": contract.unit,
        "method": rows[0].reference.method,
        "bound": Bound.UPPER.value,
        "methods": [row.to_dict() for row in rows],
    }


def _show(
    rows: "tuple[VppCalibration, ...]",
    allocation: "Allocation",
    fidelity: "Fidelity",
    budget: dict[str, Any],
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    plural = "round" if budget["rounds"] == 1 else "rounds"
    title = "VPP for epsilon {epsilon:g}, delta {delta:g}, {rounds:,} {plural}, split {split:g}"
    table = Table(
        title=title.format(**budget, plural=plural), box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    table.add_column("method")
    for heading in ("sigma_ref", "sigma_A", "sigma_B", "vs joint", "true eps"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(row.reference.method, *_cells(row))
    console = Console()
    console.print(table)
    on_a, on_b = allocation.noise_ratios
    for line in (
        f"selection: {allocation.sizes[0]} of {allocation.dim} coordinates, Laplace noise of scale {rows[0].scale:.6g}",
        f"expected overlap with the true top-{allocation.sizes[0]}: {fidelity.note}",
        f"noise against isotropic with sigma_ref: {on_a:.3f} on A, {on_b:.3f} on B, {allocation.energy_ratio:.3f} "
        "in energy",
        *(f"{row.reference.method}: {row.note}" for row in rows),
    ):
        console.print(line, soft_wrap=True, highlight=False)


def _cells(row: "VppCalibration") -> tuple[str, ...]:
    from accountant.comparison import percent

    reference = row.reference
    if reference.sigma is None or row.multipliers is None:
        return ("n/a", "", "", "", "")
    sigma_a, sigma_b = row.multipliers
    excess = percent(reference.excess_percent or 0.0, "+.1f")
    return (
        rounded_up(reference.sigma, digits=5),
        rounded_up(sigma_a, digits=5),
        rounded_up(sigma_b, digits=5),
        excess,
        f"{reference.true_epsilon:.5g}",
    )
