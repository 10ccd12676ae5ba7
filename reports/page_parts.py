"""What the page shows beside its tables: figures per cell, pictures, scope, attackers and provenance."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from privkit import atomic
from reports import numbers, sections
from reports.figures import histograms, ink, roc, rounds
from reports.findings import CellFindings, Findings, Inversion, Rebuilt, Taken

MOST_PICTURES = 600_000  # characters of base64, out of the 2 MB of a page


@dataclass(frozen=True, kw_only=True)
class AttackKey:
    """One attack in the key of a cell's figures: its line, and its AUC or why it has none."""

    name: str
    colour: int
    dashes: str
    auc: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class CellFigures:
    """What attacks got out of one cell, drawn: figures by kind."""

    cell: CellFindings
    key: tuple[AttackKey, ...]
    figures: Mapping[str, Markup]


@dataclass(frozen=True, kw_only=True)
class PictureGrid:
    """The pictures of one inversion that fit on the page."""

    cell: str
    inversion: Inversion
    shown: tuple[Rebuilt, ...]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """What an epsilon is about, and which cells it is so for."""

    unit: str
    relation: str
    delta: str
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Attacker:
    """Who attacks and what it knows, and with which attacks."""

    who: str
    knows: str
    attacks: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where the numbers of one cell come from."""

    cell: str
    setting: str
    config_hash: str
    seeds: str
    data: Mapping[str, str]
    versions: str
    ledger_heads: tuple[str, ...]


def attack_colours(findings: Findings) -> dict[str, int]:
    """Return each attack's place, and so its colour, throughout a page."""
    names = dict.fromkeys(t.attack for cell in findings.cells for t in cell.taken)
    return {name: place for place, name in enumerate(names)}


def cell_figures(findings: Findings) -> list[CellFigures]:
    """Return what to draw of every cell that was attacked."""
    colours, start, auc = attack_colours(findings), roc.floor(findings), rounds.limits(findings)
    found = []
    for cell in findings.cells:
        if not cell.taken:
            continue
        drawn = {
            "roc": roc.roc(cell, colours, start=start),
            "rounds": rounds.rounds(cell, colours, auc=auc),
            "scores": histograms.histograms(cell, colours),
        }
        key = tuple(_key(t, colours[t.attack]) for t in cell.taken)
        figures = {kind: figure for kind, figure in drawn.items() if figure is not None}
        found.append(CellFigures(cell=cell, key=key, figures=figures))
    return found


def _key(found: Taken, place: int) -> AttackKey:
    auc = found.auc
    return AttackKey(
        name=found.attack,
        colour=place % ink.ATTACK_COLOURS,
        dashes=ink.css_dashes(place),
        auc="" if auc is None else numbers.interval(auc.value, auc.low, auc.high),
        reason=found.reason or ("" if auc is None or auc.value is not None else auc.note),
    )


def by_cell(
    findings: Findings, draw: Callable[[CellFindings], Markup | None]
) -> list[tuple[CellFindings, Markup]]:
    """Return every cell that there is something to draw of, with its figure."""
    drawn = [(cell, draw(cell)) for cell in findings.cells]
    return [(cell, figure) for cell, figure in drawn if figure is not None]


def pictures(findings: Findings) -> list[PictureGrid]:
    """Return the pictures of every inversion, the first few of each if all would make the page too big."""
    found = [(cell.name, i) for cell in findings.cells for i in cell.inversions if i.rebuilt]
    share = MOST_PICTURES // max(1, len(found))
    return [PictureGrid(cell=cell, inversion=i, shown=_first(i.rebuilt, share)) for cell, i in found]


def _first(rebuilt: tuple[Rebuilt, ...], room: int) -> tuple[Rebuilt, ...]:
    """Return as many targets as there is room for, spread evenly over all."""
    each = max(len(r.picture) + len(r.nearest) + len(r.mean) for r in rebuilt)
    step = -(-len(rebuilt) * each // room) if each else 1
    return rebuilt[::step] if step <= len(rebuilt) else ()


def scopes(findings: Findings) -> list[Scope]:
    """Return what the audit's epsilons are about; cells that agree come together."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for cell in findings.cells:
        if cell.promised is not None:
            claim = cell.promised.claim
            about = (claim.unit, str(claim.relation), numbers.delta(claim.delta))
            found.setdefault(about, []).append(cell.name)
    return [
        Scope(unit=unit, relation=relation, delta=delta, cells=tuple(cells))
        for (unit, relation, delta), cells in found.items()
    ]


def attackers(findings: Findings) -> list[Attacker]:
    """Return who attacks; attacks of one attacker come together."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for cell in findings.cells:
        for tried in (*cell.taken, *cell.inversions):
            about = (tried.who or f"tier {tried.tier}", ", ".join(tried.knows))
            found.setdefault(about, {})[_tried(tried)] = None
    return [Attacker(who=who, knows=knows, attacks=tuple(names)) for (who, knows), names in found.items()]


def _tried(tried: Taken | Inversion) -> str:
    return tried.attack if isinstance(tried, Taken) else f"{tried.attack} ({tried.tier})"


def provenance(findings: Findings) -> list[Provenance]:
    """Return where the numbers of every cell come from."""
    runs = findings.provenance.get("runs", {})
    assert isinstance(runs, dict)
    return [_provenance(cell, run) for cell, run in runs.items()]


def _provenance(cell: str, run: Mapping[str, Any]) -> Provenance:
    return Provenance(
        cell=cell,
        setting=sections.setting(run["config"], run["seeds"]),
        config_hash=hashlib.sha256(atomic.canonical_json(run["config"]).encode()).hexdigest(),
        seeds=", ".join("not stated" if seed is None else str(seed) for seed in run["seeds"]),
        data=run["data"],
        versions=", ".join(f"{name} {version}" for name, version in run["versions"].items()),
        ledger_heads=tuple(run["ledger_heads"]),
    )
