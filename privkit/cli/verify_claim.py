"""``privkit verify-claim``: whether a stated (epsilon, delta) is true, for a formula or for a configuration."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privkit.errors import InputError

if TYPE_CHECKING:
    from accountant.claimed_rules import AbstractRule, Recipe
    from accountant.verify import Verification

_DELTA = 1e-5
_CHECKED = ("A8",)  # whose epsilon it is: the accountant's
FALSE, BROKEN = 3, 5  # exit codes, as those of ``privkit audit``


class Conversion(StrEnum):
    """How a Renyi divergence becomes an epsilon."""

    CLASSIC = "classic"
    BEST = "best"


def verify_claim(
    config: Path | None = typer.Argument(None, help="A configuration file: every cell's noise is checked."),
    epsilon: float | None = typer.Option(None, "--epsilon", help="Claimed privacy loss, in nats, above 0."),
    delta: float | None = typer.Option(
        None, "--delta", help="Claimed probability of failure, in (0, 1); 1e-5 by default."
    ),
    rounds: int | None = typer.Option(
        None, "--rounds", help="Releases on the same data, at least 1; 1 by default."
    ),
    sigma: float | None = typer.Option(
        None, "--sigma", help="Noise standard deviation / l2 sensitivity (2R/n for class means)."
    ),
    c1: float | None = typer.Option(
        None, "--c1", help="Noise by the formula c1 sqrt(T ln(1/delta)) / epsilon."
    ),
    orders: str | None = typer.Option(
        None, "--orders", help="Noise by these Renyi orders: vpdr, or numbers with commas between."
    ),
    conversion: Conversion | None = typer.Option(
        None,
        "--conversion",
        help="Of the Renyi divergence; classic by default. Without --orders: at the best order.",
    ),
    split: float | None = typer.Option(
        None, "--split", help="Share of epsilon for a pure selection per round; the noise gets the rest."
    ),
    per_round: bool = typer.Option(
        False,
        "--per-round-epsilon",
        help="Every round spends what is claimed for the run: on the selection with --split, else on the noise.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Check a stated privacy loss. Exit 0 true, 2 bad input, 3 the number is false, 5 an assumption is broken."""
    formula = {"--sigma": sigma, "--c1": c1, "--orders": orders, "--conversion": conversion}
    if config is not None:
        of_a_number = {
            "--epsilon": epsilon,
            "--delta": delta,
            "--rounds": rounds,
            "--split": split,
            **formula,
        }
        _refuse_both(config, of_a_number | {"--per-round-epsilon": per_round or None})
        from privkit.cli import verify_config

        raise typer.Exit(verify_config.check(config, as_json=as_json))
    if epsilon is None:
        raise InputError(
            "nothing to verify; give --epsilon and how its noise was found, or a configuration file."
        )
    from accountant.claimed_rules import Recipe
    from accountant.verify import verify_recipe

    given = [name for name, value in formula.items() if value is not None]
    if not given and split is None and not per_round:
        raise InputError(
            f"--epsilon alone has no noise to verify; add one of {', '.join(formula)} or --split."
        )
    if per_round and split is None and sigma is not None:
        raise InputError(
            f"--sigma {sigma:g} is the noise of every round already; leave out --per-round-epsilon."
        )
    rule = _rule(sigma, c1, orders, conversion)
    recipe = Recipe(
        epsilon=epsilon,
        delta=_DELTA if delta is None else delta,
        rounds=1 if rounds is None else rounds,
        rule=rule,
        split=split,
        per_round=per_round,
    )
    found = verify_recipe(recipe)
    if as_json:
        _echo(_document(recipe, found))
    else:
        _show(recipe, found)
    raise typer.Exit(0 if found.valid else FALSE)


def _refuse_both(config: Path, named: dict[str, Any]) -> None:
    given = [name for name, value in named.items() if value is not None]
    if given:
        raise InputError(f"{config} says what is claimed, and so does {given[0]}; give one of the two.")


def _rule(
    sigma: float | None, c1: float | None, orders: str | None, conversion: Conversion | None
) -> "AbstractRule":
    """Return how the noise was found; two ways at once are refused."""
    from accountant.claimed_rules import BestRenyi, ClassicRenyi, Exact, Formula, Stated

    renyi = {Conversion.CLASSIC: ClassicRenyi, Conversion.BEST: BestRenyi}[conversion or Conversion.CLASSIC]
    ways: list[tuple[str, Any, Callable[[], AbstractRule]]] = [
        ("--sigma", sigma, lambda: Stated(noise_multiplier=sigma or 0.0)),
        ("--c1", c1, lambda: Formula(c1=c1 or 0.0)),
        (
            "--orders or --conversion",
            conversion if orders is None else orders,
            lambda: renyi(orders=_numbers(orders)),
        ),
    ]
    given = [(name, make) for name, value, make in ways if value is not None]
    if len(given) > 1:
        names = " and ".join(name for name, _ in given)
        raise InputError(f"{names} are two ways to find the noise; give one of them.")
    return given[0][1]() if given else Exact()


def _numbers(orders: str | None) -> tuple[float, ...] | None:
    if orders is None:
        return None
    from accountant.rdp import VPDR_ORDERS

    known = {"vpdr": VPDR_ORDERS}
    if orders in known:
        return known[orders]
    try:
        return tuple(float(order) for order in orders.split(","))
    except ValueError:
        raise InputError(f"--orders {orders!r} is no list; give vpdr, or numbers such as 2,4,8.") from None


def _document(recipe: "Recipe", found: "Verification") -> dict[str, Any]:
    plain = found.to_dict()
    plain["claim"] |= {"covered": None, "broken": []}  # a formula comes without a contract to judge
    return plain | {
        "rounds": recipe.rounds,
        "rule": recipe.rule.words,
        "not_checked": _not_checked(found),
    }


def _echo(document: Any) -> None:
    import json

    typer.echo(json.dumps(document, allow_nan=False))


def _show(recipe: "Recipe", found: "Verification") -> None:
    from accountant.assumptions import named
    from privkit.cli.verify_lines import lines, noise_printed, unknown_relations

    plural = "round" if recipe.rounds == 1 else "rounds"
    of = "" if recipe.split is None else f", selection {_selection(recipe)}"
    typer.echo(f"claimed: epsilon {found.epsilon:g}, delta {found.delta:g} over {recipe.rounds:,} {plural}")
    typer.echo(f"noise: sigma {noise_printed(recipe.sigma, valid=found.valid)}, {recipe.rule.words}{of}")
    for line in (*lines(found), *unknown_relations(found)):
        typer.echo(line)
    typer.echo("not checked, a number alone does not say it:")
    for id in _not_checked(found):
        typer.echo(f"  {id}: {named(id).statement}")


def _not_checked(found: "Verification") -> list[str]:
    return [id for id in found.claim.needs if id not in _CHECKED]


def _selection(recipe: "Recipe") -> str:
    assert recipe.selection is not None
    return f"epsilon {recipe.selection.epsilon:.4g} per round"
