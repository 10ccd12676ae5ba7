"""``privkit explain``: the smallest data sets for which a claim fails, the truth, and a run that shows it."""

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from accountant.assumptions import Assumption
    from accountant.counterexamples import Counterexample, Estimate, Fact


def explain(
    name: str | None = typer.Argument(
        None, metavar="[E1..E13|A1..A10]", help="A counterexample, or an assumption; all in a table without."
    ),
    as_list: bool = typer.Option(False, "--list", help="One line per counterexample, without running any."),
    samples: int | None = typer.Option(
        None,
        "--samples",
        help="Runs on each data set, at least 100; enough for a second or two if not given.",
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Of the noise; the same seed gives the same numbers."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Show the smallest data sets for which a claim fails. With the exact truth, and a simulation that must agree."""
    an_example = name is not None and name[:1].upper() == "E"
    if samples is not None and (as_list or not an_example):
        from privkit.errors import InputError

        raise InputError(f"--samples {samples} has nothing to run; name a counterexample, such as E3.")
    if name is None or as_list:
        _list(name, as_json)
        return
    from accountant import counterexamples
    from accountant.assumptions import ASSUMPTIONS

    assumptions = {assumption.id: assumption for assumption in ASSUMPTIONS}
    if name.upper() in assumptions:
        _explain_assumption(assumptions[name.upper()], as_json)
        return
    known = [*counterexamples.ids(), *assumptions]
    if name.upper() not in known:
        from privkit.errors import InputError
        from privkit.plug import unknown

        raise InputError(unknown("counterexample or assumption", name.upper(), known=known))
    _explain_example(counterexamples.find(name), samples, seed, as_json)


def _list(name: str | None, as_json: bool) -> None:
    from accountant.counterexamples import every

    if name is not None:
        from privkit.errors import InputError

        raise InputError(f"--list shows all counterexamples and {name} asks for one; leave one of them out.")
    if as_json:
        _echo([_outline(example) for example in every()])
    else:
        _show_outlines(every())


def _outline(example: "Counterexample") -> dict[str, Any]:
    return {
        "id": example.id,
        "title": example.title,
        "breaks": list(example.breaks),
        "claim": example.claim,
        "truth": example.truth,
        "way_out": example.way_out,
        "facts": [_plain(fact) for fact in example.facts()],
    }


def _plain(fact: "Fact") -> dict[str, Any]:
    return {"name": fact.name, "claimed": fact.claimed, "exact": fact.value}


def _explain_assumption(assumption: "Assumption", as_json: bool) -> None:
    from accountant.counterexamples import breaking, find

    examples = [find(id) for id in breaking(assumption.id)]
    if as_json:
        outlines = [_outline(example) for example in examples]
        _echo({"id": assumption.id, "statement": assumption.statement, "broken_by": outlines})
        return
    typer.echo(f"{assumption.id}: {assumption.statement}")
    if examples:
        _show_outlines(examples)
    else:
        typer.echo("no counterexample breaks it; a contract that does, or leaves it open, covers no claim")


def _explain_example(example: "Counterexample", samples: int | None, seed: int, as_json: bool) -> None:
    import numpy as np

    draws = example.draws if samples is None else samples
    estimates = {found.name: found for found in example.simulate(draws, np.random.default_rng(seed))}
    if as_json:
        _echo(_document(example, estimates, draws, seed))
    else:
        _show(example, estimates, draws, seed)


def _document(
    example: "Counterexample", estimates: "dict[str, Estimate]", samples: int, seed: int
) -> dict[str, Any]:
    from dataclasses import asdict

    from accountant.assumptions import named
    from accountant.counterexamples import described

    facts = example.facts()
    before, after = (described(records) for records in example.data())
    return _outline(example) | {
        "breaks": [{"id": id, "statement": named(id).statement} for id in example.breaks],
        "numbers": asdict(example),
        "details": list(example.details()),
        "D": before,
        "D_prime": after,
        "samples": samples,
        "seed": seed,
        "facts": [_plain(fact) | {"simulated": _simulated(fact, estimates)} for fact in facts],
        "agrees": all(estimates[fact.name].agrees(fact) for fact in facts if fact.name in estimates),
    }


def _simulated(fact: "Fact", estimates: "dict[str, Estimate]") -> dict[str, Any] | None:
    from dataclasses import asdict

    if fact.name not in estimates:
        return None
    found = estimates[fact.name]
    return asdict(found) | {"agrees": found.agrees(fact)}


def _show_outlines(examples: "Iterable[Counterexample]") -> None:
    table = _table("", "breaks", "counterexample", "of", "claimed", "true")
    for example in examples:
        fact = example.facts()[0]
        breaks = ", ".join(example.breaks) or "none"
        table.add_row(
            example.id, breaks, example.short, fact.name, _number(fact.claimed), _number(fact.value)
        )
    _print(table)


def _show(example: "Counterexample", estimates: "dict[str, Estimate]", samples: int, seed: int) -> None:
    from accountant.assumptions import named
    from accountant.counterexamples import described

    before, after = (described(records) for records in example.data())
    broken = [f"breaks {id}: {named(id).statement}" for id in example.breaks]
    typer.echo(f"{example.id}: {example.title}")
    for line in broken or ["breaks no assumption"]:
        typer.echo(line)
    typer.echo(f"claimed: {example.claim}")
    typer.echo(f"true: {example.truth}")
    typer.echo(f"way out: {example.way_out}")
    for heading, classes in (("D", before), ("D'", after)):
        for label, records in classes.items():
            typer.echo(f"{heading:2} class {label}: {records}")
    for line in example.details():
        typer.echo(line)
    _print(_facts_table(example, estimates))
    typer.echo(
        f"{samples:,} runs on each data set, seed {seed}; numbers of the example: {_settings(example)}"
    )
    for found in estimates.values():
        typer.echo(f"{found.name}: {found.method}")


def _settings(example: "Counterexample") -> str:
    from dataclasses import asdict

    return ", ".join(f"{name}={value:g}" for name, value in asdict(example).items())


def _facts_table(example: "Counterexample", estimates: "dict[str, Estimate]") -> Any:
    level = next(iter(estimates.values())).level
    table = _table("", "claimed", "exact", "simulated", f"{100 * level:g} % interval", "agrees")
    for fact in example.facts():
        cells = _cells(fact, estimates[fact.name]) if fact.name in estimates else ("", "", "")
        table.add_row(fact.name, _number(fact.claimed), _number(fact.value), *cells)
    return table


def _cells(fact: "Fact", found: "Estimate") -> tuple[str, str, str]:
    interval = f"{_number(found.low)} to {_number(found.high)}"
    return _number(found.value), interval, "yes" if found.agrees(fact) else "NO"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _table(*headings: str) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in headings:
        table.add_column(heading)
    return table


def _print(table: Any) -> None:
    from rich.console import Console

    Console(highlight=False).print(table)


def _echo(document: Any) -> None:
    import json

    typer.echo(json.dumps(document, allow_nan=False))
