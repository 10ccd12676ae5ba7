"""From a study to run directories: which runs there are, and which are trained together.

Runs that agree in data, encoder, model, method, server, rounds and the defense's local rule share every tensor
operation, so they are trained as one batch. Stacked arithmetic may differ in the last bits from one batch
composition to another; a run therefore remembers its batch, and a resumed run is trained in the same one:
same bytes after any kill.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from accountant.contract import DependsOn
from privkit import canary
from privkit.atomic import canonical_json
from privkit.canaries._base import AbstractCanaries
from privkit.config import RunConfig
from privkit.data._split import Parts, divide, divide_things
from privkit.defenses._base import Known, Private
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod, Sends
from privkit.network import Network
from privkit.noise import NoNoise
from privkit.store import Run, RunInfo
from privkit.study import Plan
from privkit.train.attendance import Attendance
from privkit.train.encoded import Encoded, source
from privkit.train.first import first_parameters
from privkit.transcript import Records
from privkit.weights import Weights

_NAMED = 3  # cells that a few words about a batch name


def parts(plan: Plan, data: Encoded) -> list[Parts]:
    """Return the run's split of every client's domain; which one is held out changes none of the others."""
    found = _every_part(plan, data.whole or data)
    return found if data.whole is None else [*found[: data.held_out], *found[data.held_out + 1 :]]


def held_out(plan: Plan, data: Encoded) -> Parts:
    """Return the run's split of the domain that is held out.

    Raises:
        InputError: it is tested on a class that no client trains on.
    """
    assert data.whole is not None
    found = _every_part(plan, data.whole)[data.held_out]
    seen = {int(c) for m, part in enumerate(parts(plan, data)) for c in np.unique(data.y[m][part.members])}
    tested = np.unique(data.whole.test[data.held_out].y[found.test])
    odd = next((int(c) for c in tested if int(c) not in seen), None)
    if odd is not None:
        raise InputError(
            f"class {odd} of domain {data.whole.names[data.held_out]}, which is held out, is in no domain that is "
            "trained on; hold out another, or leave the class out."
        )
    return found


def _every_part(plan: Plan, data: Encoded) -> list[Parts]:
    how = {"num_classes": data.num_classes, "shares": plan.config.split.shares, "seed": plan.seed}
    shown = [things for things in data.things if things is not None]
    if shown:
        _refuse_some_things(data)
        return divide_things(list(zip(data.y, shown, strict=True)), names=data.names, **how)
    return [
        divide(
            y,
            **how,
            client=m,
            name=data.names[m],
            tests=data.test[m].y if data.keeps_tests(m) else None,
        )
        for m, y in enumerate(data.y)
    ]


def _refuse_some_things(data: Encoded) -> None:
    """Raise unless all domains say what their records show, and draw their test records from them."""
    for m, name in enumerate(data.names):
        if data.things[m] is None:
            raise InputError(
                f"domain {name} does not say what its records show, and others do; name things in all domains or none."
            )
        if data.keeps_tests(m):
            raise InputError(
                f"domain {name} keeps test records of its own, and shares things with others, of which a thing's "
                "records must be on one side; leave out one of the two."
            )


def left_out(todo: list[Plan], encoded: Mapping[str, Encoded]) -> list[str]:
    """Return a sentence for every domain whose small classes are left out, and of which cells, if not of all.

    Args:
        todo: the runs.
        encoded: what each is trained on, by :func:`privkit.train.encoded.source`.
    """
    found: dict[str, dict[str, None]] = {}
    for plan in todo:
        for sentence in _dropped(plan, encoded[source(plan.config)]):
            found.setdefault(sentence, {})[plan.cell] = None
    every = len({plan.cell for plan in todo})
    return [s if len(cells) == every else f"{_some(list(cells))}: {s}" for s, cells in found.items()]


def _some(cells: list[str]) -> str:
    """Return the names of a few cells, and how many more there are."""
    more = len(cells) - _NAMED
    return ", ".join([*cells[:_NAMED], *([f"{more} more"] if more > 0 else [])])


def _dropped(plan: Plan, data: Encoded) -> list[str]:
    """Return a sentence for every domain whose small classes are left out; what they say is the same for every seed."""
    said = []
    for m, part in enumerate(parts(plan, data)):
        labels, counts = np.unique(data.y[m][part.dropped], return_counts=True)
        if len(labels):
            each = ", ".join(f"class {label}: {n}" for label, n in zip(labels, counts, strict=True))
            said.append(
                f"domain {data.names[m]}: {len(part.dropped)} of {len(data.y[m])} records left out, their classes are "
                f"too small to be split ({each})."
            )
    return said


def asked_about(plan: Plan, data: Encoded) -> np.ndarray:
    """Return which clients there are questions about: all, but those that send in none of the planned rounds."""
    if not plan.config.method.uploads:
        return np.ones(len(data.names), dtype=bool)
    return Attendance.of(plan, clients=len(data.names)).ever_sends(plan.config.rounds)


def silent(todo: list[Plan], encoded: Mapping[str, Encoded]) -> list[str]:
    """Return a sentence for every run that asks nothing about some clients, since these never send anything."""
    found = []
    for plan in todo:
        data = encoded[source(plan.config)]
        never = np.flatnonzero(~asked_about(plan, data)).tolist()
        if never:
            names = _some([data.names[m] for m in never])
            found.append(
                f"cell {plan.cell} (seed {plan.seed}): nothing is asked about {names}, which send in none of "
                f"{plan.config.rounds} rounds."
            )
    return found


def canaries(plan: Plan, data: Encoded) -> Records | None:
    """Return the canaries that the run plants, without their signs."""
    wanted = plan.config.canaries
    if not wanted.count or plan.config.method.sends is not Sends.PROTOTYPES:
        return None
    designed = canary.design(
        clients=len(data.names),
        count=wanted.count,
        dim=data.dim,
        norm=wanted.norm,
        per_class=wanted.per_class,
        num_classes=data.num_classes,
        seed=plan.seed,
    )
    return designed.where(asked_about(plan, data)[designed.clients])


def other_canaries(plan: Plan, data: Encoded) -> dict[AbstractCanaries, Records]:
    """Return the canaries of other kinds that the run plants, by kind, without their answers."""
    found: dict[AbstractCanaries, Records] = {}
    if plan.config.method.sends is not Sends.PROTOTYPES:
        return found
    usual = canaries(plan, data)
    free = data.num_classes if usual is None else int(usual.labels.max()) + 1
    for kind in plan.config.other_canaries or ():
        designed = kind.design(clients=len(data.names), dim=data.dim, first_label=free, seed=plan.seed)
        designed = designed.where(asked_about(plan, data)[designed.clients])
        free = int(designed.labels.max()) + kind.classes_each
        found[kind] = designed
    return found


def _planted_classes(plan: Plan, data: Encoded) -> Records | None:
    """Return records of every class that canaries take."""
    usual = canaries(plan, data)
    parts = [] if usual is None else [usual]
    for kind, designed in other_canaries(plan, data).items():
        parts.append(kind.planted(designed, np.ones(len(designed), dtype=bool), round=0))
    return _joined(parts) if parts else None


def known(plan: Plan, data: Encoded) -> list[Known]:
    """Return what each client's mechanism may read for free: all classes, and the attacker's records as public ones."""
    planted = _planted_classes(plan, data)
    return [
        Known.at_first(
            client=m,
            classes=data.num_classes,
            canaries=planted,
            owned=_records(data, m, part.reference),
            summary=plan.config.method.summary,
        )
        for m, part in enumerate(parts(plan, data))
    ]


def refuse_impossible(plan: Plan, data: Encoded) -> None:
    """Raise if a plan's split, canaries or releases cannot be had; nothing is written for it then."""
    split = parts(plan, data)
    Attendance.of(plan, clients=len(data.names))
    if data.whole is not None:
        held_out(plan, data)
    for one in plan.config.architectures:
        if one.model.transform is not None or one.model.first_head != "random":
            first_parameters(Network(one.model), one.encoder, data, split, seed=plan.seed)
    canaries(plan, data)
    mechanism = plan.config.defense.mechanism(rounds=plan.config.rounds)
    free, sent = known(plan, data), {}
    for m, mine in enumerate(first_messages(plan, data)):
        try:
            sent[m] = mechanism.send(mine, NoNoise(), free[m]).payload
        except ValueError as error:
            raise InputError(f"cell {plan.cell}, client {data.names[m]}: {error}") from None
    try:
        plan.config.method.refuse_unusable(sent)
    except ValueError as error:
        raise InputError(f"cell {plan.cell}: {error}") from None


def later_messages(plan: Plan, data: Encoded) -> list[Private]:
    """Return messages that cost what those after a round of training do."""
    return [
        _trained(plan.config.method, mine, len(part.members))
        for mine, part in zip(first_messages(plan, data), parts(plan, data), strict=False)
    ]


def _trained(method: AbstractMethod, private: Private, records: int) -> Private:
    if not isinstance(private, Weights):
        return private
    return replace(private, steps=method.steps(records), sampling_rate=method.sampling_rate(records))


def first_messages(plan: Plan, data: Encoded) -> list[Private]:
    """Return what each client would make its message of before anything is trained; nothing where none is sent."""
    config = plan.config
    if config.method.sends is Sends.NOTHING:
        return []
    if config.method.sends is Sends.WEIGHTS:
        return [_initial_weights(plan, data, m) for m in range(len(data.names))]
    return [
        Embeddings(
            vectors=data.x[m][part.members].astype(np.float64),
            labels=data.y[m][part.members],
            encoder=config.method.encoder_depends_on(config.architecture(m).model),
            # no model says anything before the first round, and how many numbers it will say is all that is asked
            statistics=np.zeros((len(part.members), len(config.method.says))) if config.method.says else None,
        )
        for m, part in enumerate(parts(plan, data))
    ]


def _initial_weights(plan: Plan, data: Encoded, client: int) -> Weights:
    one = plan.config.architecture(client)
    network = one.model.build(one.encoder)
    start = first_parameters(network, one.encoder, data, parts(plan, data), seed=plan.seed)
    begun = plan.config.method.first(start, seed=plan.seed)
    named = {name: p for name, p in begun.items() if plan.config.method.sends_weight(name)}
    return Weights(named=named, received=named, depends_on=DependsOn.PRIVATE_STATE)


def info(plan: Plan, data: Encoded) -> RunInfo:
    """Return what the plan's run is created with, and compared with when it is resumed."""
    promise = plan.config.defense.promise if plan.config.method.uploads else None
    return RunInfo(
        cell=plan.cell,
        seed=plan.seed,
        rounds=plan.config.rounds,
        clients=data.names,
        num_classes=data.num_classes,
        dim=data.dim,
        promise=promise and promise._asdict(),
        budget=_budget(plan),
        config=json.loads(canonical_json(plan.config.settings())),
        data=data.hashes,
        versions={name: version(name) for name in ("privkit-audit", "numpy", "torch", "scipy")},
    )


def _budget(plan: Plan) -> dict[str, Any] | None:
    """Return what each client may spend, where anything is released and spending is limited."""
    wanted = plan.config.budget if plan.config.method.uploads else None
    return None if wanted is None else wanted.budget.to_dict()


def open_run(root: Path, plan: Plan, data: Encoded, batch: Iterable[str]) -> Run:
    """Return the plan's run directory, created with its questions and answers if it is not there."""
    run = Run.create(root / plan.name, info(plan, data), batch=tuple(batch))
    if run.completed == 0:
        _write_questions(run, plan, data)
    return run


def _write_questions(run: Run, plan: Plan, data: Encoded) -> None:
    split, sends = parts(plan, data), asked_about(plan, data)
    planted, others = canaries(plan, data), other_canaries(plan, data)
    asked = [(m, p) for m, p in enumerate(split) if sends[m]]
    pool = [_records(data, m, np.concatenate([p.members, p.non_members])) for m, p in asked]
    shuffles = [np.argsort(np.concatenate([p.members, p.non_members])) for _, p in asked]
    members = [np.arange(len(order)) < len(p.members) for order, (_, p) in zip(shuffles, asked, strict=True)]
    run.write_questions(
        records=_joined([r.where(o) for r, o in zip(pool, shuffles, strict=True)]),
        reference=_joined([_records(data, m, p.reference) for m, p in enumerate(split)]),
        canaries=planted,
        others={kind.name: designed for kind, designed in others.items()},
    )
    run.write_answers(
        members=np.concatenate([m[o] for m, o in zip(members, shuffles, strict=True)]),
        canary_signs=canary.signs(planted, seed=plan.seed) if planted else np.zeros(0, dtype=bool),
        others={kind.name: kind.answers(designed, seed=plan.seed) for kind, designed in others.items()},
    )


def _records(data: Encoded, m: int, rows: np.ndarray) -> Records:
    return Records(
        vectors=data.x[m][rows], labels=data.y[m][rows], clients=np.full(len(rows), m, dtype=np.int64)
    )


def _joined(parts: list[Records]) -> Records:
    return Records(
        vectors=np.concatenate([p.vectors for p in parts]),
        labels=np.concatenate([p.labels for p in parts]),
        clients=np.concatenate([p.clients for p in parts]),
    )


def batches(root: Path, todo: list[Plan]) -> list[list[Plan]]:
    """Return the plans that still need training, grouped into the batches they are trained in.

    A run that was begun stays in the batch it was begun in, its finished siblings included; so does one
    whose folder was removed, as long as a sibling remembers it. Runs that were never begun form one batch
    per group of equal settings (see above).
    """
    by_name = {plan.name: plan for plan in todo}
    begun = {p.name: Run(root / p.name) for p in todo if (root / p.name / "run.json").exists()}
    finished = {name for name, run in begun.items() if run.complete}
    groups: list[list[Plan]] = []
    placed = set(finished)
    for name, run in sorted(begun.items(), key=lambda item: item[1].complete):
        group = [by_name[s] for s in run.batch if s in by_name and _alike(by_name[s], by_name[name])]
        missing = {plan.name for plan in group} - finished
        if missing and missing.isdisjoint(placed):
            groups.append(group)
            placed |= missing
    fresh: dict[str, list[Plan]] = {}
    for plan in todo:
        if plan.name not in placed:
            fresh.setdefault(_shared(plan.config), []).append(plan)
    return [*groups, *fresh.values()]


def described(batch: list[Plan]) -> str:
    """Return what a batch trains, in a few words: its method, its runs and the first of its cells."""
    names = list(dict.fromkeys(plan.cell for plan in batch))
    runs = f"{len(batch)} run{'s' * (len(batch) > 1)}"
    return f"{batch[0].config.method.name}, {runs} ({_some(names)}), rounds"


def _alike(one: Plan, other: Plan) -> bool:
    return _shared(one.config) == _shared(other.config)


def _shared(config: RunConfig) -> str:
    """Return what must be equal for two runs to be trained as one batch."""
    settings = config.settings()
    keys = ("data", "held_out", "encoder", "model", "mixed", "method", "server", "rounds", "precision")
    shared = {key: settings.get(key) for key in (*keys, "participation")}
    rule = config.defense.local
    return canonical_json({**shared, "rule": [type(rule).__name__, rule.model_dump(mode="json")]})
