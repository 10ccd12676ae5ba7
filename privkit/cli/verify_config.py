"""What every cell of a configuration promises, against what its mechanism would release, before anything is trained."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privkit.cli.verify_claim import BROKEN, FALSE

if TYPE_CHECKING:
    from accountant.consequences import Broken
    from accountant.events import Event
    from accountant.verify import Verification
    from privkit.config import RunConfig
    from privkit.embeddings import Embeddings

_NOT_DECLARED = "is not declared: no epsilon is known"
_PER_CLASS = (
    32  # records of a made-up client; what a mechanism costs may depend on how many classes there are
)


def check(path: Path, *, as_json: bool) -> int:
    """Print what every cell promises and what that is worth, and return the exit code."""
    from privkit.study import load

    cells = load(path).cells
    found = {name: _verified(name, config) for name, config in cells.items()}
    budgets = {
        name: config.budget and config.budget.model_dump(mode="json") for name, config in cells.items()
    }
    if as_json:
        import json

        plain = {name: cell and cell.to_dict() | {"budget": budgets[name]} for name, cell in found.items()}
        typer.echo(json.dumps({"cells": plain}, allow_nan=False))
    else:
        _show_all(found, budgets)
    return _exit_code([cell for cell in found.values() if cell is not None])


def _exit_code(found: "list[Verification]") -> int:
    if not all(cell.valid for cell in found):
        return FALSE
    return BROKEN if any(cell.broken for cell in found) else 0


def _verified(name: str, config: "RunConfig") -> "Verification | None":
    """Return a cell's promise held against its events; None if it promises nothing or releases nothing."""
    from accountant.verify import verify
    from privkit.errors import InputError

    promise = config.defense.promise if config.method.uploads else None
    if promise is None:
        return None
    try:
        event = planned_event(config)
    except ValueError as error:
        raise InputError(f"cell {name}: {error}") from None
    return verify(event, epsilon=promise.epsilon, delta=promise.delta, rounds=config.rounds)


def planned_event(config: "RunConfig") -> "Event":
    """Return all that one client would release, round by round, as if no noise were drawn.

    The client's records are made up, so how many are behind each released vector counts as not declared.
    """
    from accountant.events import Composed

    return Composed(events=tuple(_without_counts(event) for event in _rounds(config)))


def _rounds(config: "RunConfig") -> "Iterator[Event]":
    import numpy as np

    from accountant.contract import DependsOn
    from privkit.defenses._base import Known
    from privkit.methods._base import Sends
    from privkit.noise import NoNoise
    from privkit.weights import Weights

    classes = config.data.num_classes
    own = _made_up(config, encoder=config.encoder_depends_on)
    if config.method.sends is Sends.WEIGHTS:
        own = Weights(named={"head.weight": np.zeros((1, classes))}, depends_on=DependsOn.PRIVATE_STATE)
    known = Known(
        labels=np.arange(classes),
        classes=classes,
        public=_made_up(config, encoder=DependsOn.PUBLIC),
        summary=config.method.summary,
    )
    mechanism = config.defense.mechanism(rounds=config.rounds)
    for _ in range(config.rounds):
        yield mechanism.cost(own, known)
        known = mechanism.send(own, NoNoise(), known).known


def _made_up(config: "RunConfig", **named: Any) -> "Embeddings":
    import numpy as np

    from privkit.embeddings import Embeddings

    labels = np.repeat(np.arange(config.data.num_classes), _PER_CLASS)
    vectors = np.random.default_rng(0).normal(size=(len(labels), config.architecture(0).encoder.dim))
    return Embeddings(vectors=vectors, labels=labels, **named)


def _without_counts(event: "Event") -> "Event":
    from accountant.events import Composed, Leaf, Repeated

    if isinstance(event, Repeated):
        return replace(event, event=_without_counts(event.event))
    if isinstance(event, Composed):
        return replace(event, events=tuple(_without_counts(part) for part in event.events))
    return (
        replace(event, contract=replace(event.contract, class_counts=()))
        if isinstance(event, Leaf)
        else event
    )


def _show_all(found: "dict[str, Verification | None]", budgets: dict[str, Any]) -> None:
    """Print every cell, and what is not known of them once, at the end."""
    from privkit.cli.verify_lines import unknown_relations

    cells_of: dict[str, list[str]] = {}
    for name, cell in found.items():
        for sentence in () if cell is None else unknown_relations(cell):
            cells_of.setdefault(sentence, []).append(name)
    for name, cell in found.items():
        _show(name, cell, budgets[name])
    priced = [name for name, cell in found.items() if cell is not None and cell.claim.unbounded is None]
    for sentence, names in cells_of.items():
        typer.echo(sentence if names == priced else f"{', '.join(names)}: {sentence}")


def _show(name: str, found: "Verification | None", budget: dict[str, Any] | None) -> None:
    from privkit.cli.verify_lines import lines, noise_printed

    if found is None:
        typer.echo(f"{name}: promises nothing")
        return
    noise = "" if found.sigma is None else f", noise: sigma {noise_printed(found.sigma, valid=found.valid)}"
    typer.echo(f"{name}: claimed epsilon {found.epsilon:g}, delta {found.delta:g}{noise}")
    for line in lines(found):
        typer.echo(f"  {line}")
    if budget is not None:
        typer.echo(f"  {_limit(found, budget)}")
    for broken in found.broken:
        examples = f" (privkit explain {' '.join(broken.examples)})" if broken.examples else ""
        typer.echo(f"  BROKEN {broken.id}: {broken.reason}; {_cost(broken)}{examples}")


def _cost(broken: "Broken") -> str:
    return broken.cost.replace(_NOT_DECLARED, "is not known before a run: audit one to price it")


def _limit(found: "Verification", budget: dict[str, Any]) -> str:
    """Return what a budget does to the run."""
    stated = f"budget: epsilon {budget['epsilon']:g} at delta {budget['delta']:g}"
    if budget["epsilon"] >= found.claim.epsilon and budget["delta"] >= found.delta:
        return f"{stated}, enough for all rounds"
    ends = {"stop": "the run stops early", "refuse": "the run does not begin"}[budget["on_exhausted"]]
    sure = budget["epsilon"] < found.claim.epsilon and budget["delta"] <= found.delta
    return f"{stated}, {'less than' if sure else 'perhaps less than'} all rounds cost: {'then ' * (not sure)}{ends}"
