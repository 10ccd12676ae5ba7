"""``privkit calibrate gaussian`` for a target of any unit, solved for the noise or for the rounds."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from accountant.rounded import rounded_up
from privkit.errors import InputError

if TYPE_CHECKING:
    from accountant.equivalents import Equivalents
    from accountant.target import AbstractTarget


def chosen(
    *,
    epsilon: float | None,
    delta: float,
    mu: float | None,
    advantage: float | None,
    tpr: float | None,
    fpr: float | None,
    auc: float | None,
) -> "AbstractTarget":
    """Return the one target that was given; none or several are refused."""
    from accountant.target import Advantage, Auc, EpsilonDelta, Mu, TprAtFpr

    if (tpr is None) != (fpr is None):
        raise InputError("--tpr and --fpr belong together; give both.")
    made: list[tuple[str, float | None, Callable[[Any], AbstractTarget]]] = [
        ("--epsilon", epsilon, lambda value: EpsilonDelta(epsilon=value, delta=delta)),
        ("--mu", mu, lambda value: Mu(largest=value)),
        ("--advantage", advantage, lambda value: Advantage(advantage=value)),
        ("--tpr with --fpr", tpr, lambda value: TprAtFpr(tpr=value, fpr=fpr or 0.0)),
        ("--auc", auc, lambda value: Auc(auc=value)),
    ]
    given = [(name, value, make) for name, value, make in made if value is not None]
    if len(given) != 1:
        found = " and ".join(name for name, _, _ in given) or "none"
        every = ", ".join(name for name, _, _ in made)
        raise InputError(f"{found} given as target; give exactly one of {every}.")
    _, value, make = given[0]
    return make(value)


def show(target: "AbstractTarget", *, delta: float, rounds: int, sigma: float | None, as_json: bool) -> None:
    """Print the noise that ``rounds`` need, or the rounds that a ``sigma`` allows, and what they mean."""
    from accountant.equivalents import Equivalents
    from accountant.gaussian import mu_from_sigma
    from accountant.target import rounds_for, sigma_for

    if sigma is None:
        noise, times = sigma_for(target, rounds=rounds), rounds
    else:
        noise, times = sigma, rounds_for(target, sigma=sigma)
    meaning = Equivalents(mu=mu_from_sigma(sigma=noise, rounds=times), delta=delta)
    if math.isinf(meaning.epsilon):
        raise InputError(
            f"mu={meaning.mu:g} promises nothing: no float holds its epsilon; give a smaller one."
        )
    if as_json:
        import json

        typer.echo(json.dumps(_document(target, noise, times, meaning), allow_nan=False))
    else:
        plural = "release" if times == 1 else "releases"
        typer.echo(
            f"sigma {rounded_up(noise)} for {times:,} {plural}"
            if sigma is None
            else f"{times:,} {plural} with sigma {noise:g}; one more would exceed the target"
        )
        _show_meaning(meaning)


def _document(target: "AbstractTarget", sigma: float, rounds: int, meaning: "Equivalents") -> dict[str, Any]:
    from accountant.bound import Bound
    from accountant.contract import Contract

    contract = Contract()
    return {
        "sigma": sigma,
        "rounds": rounds,
        "target": dict(vars(target)),
        **meaning.to_dict(),
        "relation": contract.relation.value,
        "unit": contract.unit,
        "method": Bound.EXACT.value,
        "bound": Bound.EXACT.value,
    }


def _show_meaning(meaning: "Equivalents") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="what that means", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("mu", f"{meaning.mu:.6g}")
    table.add_row(f"epsilon at delta {meaning.delta:g}", f"{meaning.epsilon:.6g}")
    table.add_row("largest advantage of an attack", f"{meaning.advantage:.6g}")
    table.add_row("largest AUC", f"{meaning.auc:.6g}")
    for fpr, tpr in meaning.tprs.items():
        table.add_row(f"largest TPR at {100 * fpr:g} % FPR", f"{tpr:.6g}")
    Console().print(table)
