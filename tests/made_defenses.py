"""Findings about defenses of the gradient lab, made by hand: real statistics of scores that were drawn, no training."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

from attacks._base import Family
from attacks.statistics.auc import auc
from attacks.statistics.seeds import over_seeds
from privkit.audit.compared import compared
from privkit.audit.taken import Judged
from reports.findings import CellFindings, Findings, Taken, Verdict
from tests import made

UPLOADS, EACH = 16, 8
TRIED: Mapping[Family, int] = {"projection": 1, "reproduction": 1, "rival": 3, "adaptive": 2}
ATTACKS: Mapping[str, Family] = {
    "projres": "projection",
    "projres_as_coded": "reproduction",
    "gradient_cosine": "rival",
    "matched_filter": "adaptive",
    "joint_decoding": "adaptive",
}


def judged(area: float | None, seed: int = 0) -> Judged:
    """Return normal scores of 16 uploads, 8 members and 8 others each, whose AUC is about this; ``None``: all alike."""
    rng = np.random.default_rng(seed)
    members = np.tile(np.repeat([True, False], EACH), UPLOADS)
    apart = 0.0 if area is None else float(ndtri(area)) * 2**0.5
    scores = np.zeros(len(members)) if area is None else rng.normal(apart * members, 1.0)
    uploads = np.repeat(np.arange(UPLOADS), 2 * EACH)
    return Judged(
        scores=scores,
        each={},
        until={},
        members=members,
        clusters=uploads,
        runs=np.zeros_like(uploads),
        clients=uploads,
        rounds=np.zeros_like(uploads),
        expected=np.full(len(scores), np.nan),
    )


@cache
def taken(attack: str, area: float | None, *, ceiling: float | None = None, p: float | None = None) -> Taken:
    """Return what an attack whose AUC is about this got."""
    found, family = judged(area, seed=sum(attack.encode())), ATTACKS[attack]
    members, ids = found.members, (found.clusters[found.members], found.clusters[~found.members])
    return Taken(
        attack=attack,
        tier="public",
        auc=auc(found.scores[members], found.scores[~members], clusters=ids),
        auc_ceiling=ceiling,
        adjusted_p=p,
        family=family,
        compared=compared(found, tried=TRIED[family]),
    )


def cell(
    name: str,
    *taken: Taken,
    accuracy: Mapping[str, float] | None = None,
    seeds: Mapping[int, float] | None = None,
) -> CellFindings:
    """Return the findings of one cell: three clients and one seed, or what is given."""
    seeds = seeds or {0: 0.7}
    cost = replace(
        made.silent(name).cost,
        accuracy=over_seeds(list(seeds.values())),
        per_seed=dict(seeds),
        by_domain=dict(accuracy or {"a": 0.6, "b": 0.7, "c": 0.8}),
        bytes_per_round=1.2e6,
        seconds=26.0,
    )
    return replace(made.silent(name), taken=taken, cost=cost, verdict=Verdict.NOT_COVERED, seeds=len(seeds))


def findings(cells: Mapping[str, tuple[dict[str, Any], CellFindings]], **config: Any) -> Findings:
    """Return an audit of cells, each with its section ``defense``, under one configuration."""
    whole = made.findings(cells=tuple(found for _, found in cells.values()))
    runs = {
        name: {
            "seeds": list(found.cost.per_seed),
            "config": {**CONFIG, **config, "defense": defense},
            "data": {"encoder": made.HEAD},
            "versions": {},
            "ledger_heads": [f"{name}-{seed}" for seed in found.cost.per_seed],
        }
        for name, (defense, found) in cells.items()
    }
    return replace(whole, failed=(), provenance={"attacks": [], "runs": runs})


CONFIG: dict[str, Any] = {
    "data": {"name": "vader", "classes": 2},
    "backbone": {"name": "minilm", "layers": 2},
    "tuning": {"name": "adapter", "width": 192},
    "rounds": 10,
    "batch": 8,
}


def sweep(**config: Any) -> Findings:
    """Return an audit of six cells: undefended, FISGuard of three ranks, and DP-SGD of two noise scales."""
    cells: dict[str, tuple[dict[str, Any], CellFindings]] = {}
    cells["none"] = ({"name": "none"}, cell("none", taken("projres", 0.999), *_others(0.95)))
    for rank in (16, 2, 4):
        found = cell(f"fisguard-{rank}", taken("projres", 0.5), *_others(0.9), seeds={0: 0.6, 1: 0.65})
        cells[f"fisguard-{rank}"] = ({"name": "fisguard", "rank": rank}, found)
    for sigma, limit in ((1.0, 0.76), (2.0, 0.64)):
        tied = taken("projres", None, ceiling=limit, p=1.0)
        found = cell(f"dpsgd-{sigma:g}", tied, *_others(0.5, ceiling=limit, p=1.0))
        cells[f"dpsgd-{sigma:g}"] = ({"name": "dpsgd", "noise_multiplier": sigma}, found)
    return findings(cells, **config)


def _others(area: float, **limit: Any) -> list[Taken]:
    return [
        taken("projres_as_coded", 0.5, **limit),
        taken("gradient_cosine", 0.55 if area > 0.5 else 0.5, **limit),
        taken("matched_filter", area, **limit),
        Taken(attack="joint_decoding", tier="public", family="adaptive", reason="no batch size"),
    ]
