"""One table over several audits, as papers print them: attacks, or utility; every number at full precision."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from attacks.statistics.seeds import over_seeds
from reports import audit_table, numbers
from reports.findings import CellFindings, Findings
from reports.table import Column, Table

Audit = tuple[str, Findings]

_CELL = (
    Column(key="run", title="run"),
    Column(key="cell", title="cell"),
    Column(key="data", title="data"),
    Column(key="framework", title="framework"),
    Column(key="defense", title="defense"),
    Column(key="epsilon_text", title="ε", right=True, sort="epsilon"),
)
_ATTACK_KEYS = (
    "attack",
    "auc_text",
    "auc_ceiling",
    "tpr_text",
    "fp_text",
    "tpr_null",
    "tpr_ceiling",
    "adjusted_p",
    "epsilon_low",
)
_SEEDS = Column(key="seeds", title="seeds", show=numbers.count, right=True)


def attacks(audits: Sequence[Audit]) -> Table:
    """Return one row per run, cell and attack.

    Args:
        audits: what each run is called, and its findings.
    """
    known = {column.key: column for column in audit_table.ATTACKS}
    columns = (*_CELL, *(known[key] for key in _ATTACK_KEYS), _SEEDS)
    rows, keys = [], list[str]()
    for run, findings in audits:
        table = audit_table.attacks(findings)
        about = {cell.name: _about(run, cell, findings) for cell in findings.cells}
        rows += [{**row, **about[row["cell"]]} for row in table.rows]
        keys = [*dict.fromkeys([*keys, *table.keys()])]
    shown = {column.key for column in columns}
    return Table(columns=columns, rows=rows, extra=(*_CLAIM, *(key for key in keys if key not in shown)))


_OVERLAP = (
    Column(key="overlap", title="true top-k chosen", show=numbers.rate_or_blank, right=True),
    Column(key="overlap_chance", title="by chance", show=numbers.rate_or_blank, right=True),
)


def utility(audits: Sequence[Audit]) -> Table:
    """Return one row per run and cell: accuracy per domain, its mean, and its spread over domains and seeds.

    Args:
        audits: what each run is called, and its findings.
    """
    cells = [(run, cell, findings) for run, findings in audits for cell in findings.cells]
    domains = list(dict.fromkeys(name for _, cell, _ in cells for name in cell.cost.by_domain))
    columns = (
        *_CELL,
        *(Column(key=f"domain_{name}", title=name, show=numbers.rate, right=True) for name in domains),
        Column(key="avg", title="AVG", show=numbers.rate, right=True),
        Column(key="std_domains", title="std over domains", show=numbers.rate, right=True),
        Column(key="std_seeds", title="std over seeds", show=numbers.rate, right=True),
        Column(key="against_local", title="vs local", show=numbers.signed, right=True),
        *(_OVERLAP if any(cell.overlap for _, cell, _ in cells) else ()),
        _SEEDS,
    )
    rows = [{**_about(run, cell, findings), **_utility(cell)} for run, cell, findings in cells]
    return Table(
        columns=columns, rows=rows, extra=(*_CLAIM, "overlap_std", "bytes_per_round", "seconds", "reason")
    )


def _utility(cell: CellFindings) -> dict[str, Any]:
    cost, domains = cell.cost, over_seeds(list(cell.cost.by_domain.values()))
    over = cost.accuracy
    return {
        **{f"domain_{name}": value for name, value in cost.by_domain.items()},
        "avg": over and over.mean,
        "std_domains": domains.std,
        "std_seeds": over and over.std,
        "against_local": cost.against_local,
        "overlap": cell.overlap and cell.overlap.share.mean,
        "overlap_std": cell.overlap and cell.overlap.share.std,
        "overlap_chance": cell.overlap and cell.overlap.chance,
        "bytes_per_round": cost.bytes_per_round,
        "seconds": cost.seconds,
        "reason": _why_not(cell),
    }


def _why_not(cell: CellFindings) -> str:
    """Return why a number of a cell's utility is missing; empty if none is."""
    cost = cell.cost
    if cost.accuracy is None:
        return "the run kept no metrics"
    reasons = [
        f"std over seeds: {cost.accuracy.note}" if cost.accuracy.std is None else "",
        "std over domains: one domain does not show a spread" if len(cost.by_domain) < 2 else "",
        "vs local: no cell trains the same model alone" if cost.against_local is None else "",
    ]
    return "; ".join(reason for reason in reasons if reason)


_CLAIM = ("epsilon", "epsilon_reason", "delta", "relation", "covered")


def _about(run: str, cell: CellFindings, findings: Findings) -> dict[str, Any]:
    """Return what identifies a cell among several runs, and what it promises."""
    claim = None if cell.promised is None else cell.promised.claim
    epsilon = 0.0 if claim is None else claim.epsilon
    return {
        "run": run,
        "cell": cell.name,
        **_setting(findings.provenance, cell.name),
        "epsilon": epsilon,
        "epsilon_text": audit_table.epsilon_text(claim),
        "epsilon_reason": "" if claim is None or math.isfinite(epsilon) else claim.unbounded or "no promise",
        "delta": claim and claim.delta,
        "relation": claim and str(claim.relation),
        "covered": claim is None or claim.covered,
        "seeds": cell.seeds,
    }


def _setting(provenance: Mapping[str, Any], cell: str) -> dict[str, str | None]:
    """Return the names of a cell's data set, method and defense; ``None`` if other code recorded it."""
    config = provenance.get("runs", {}).get(cell, {}).get("config", {})
    sections = {"data": "data", "framework": "method"}
    names = {key: (config.get(section) or {}).get("name") for key, section in sections.items()}
    return {**names, "defense": _defense(config["defense"]) if config.get("defense") else None}


def _defense(section: Mapping[str, Any]) -> str:
    """Return a defense's name, and in brackets what it is made of: ``vpp (random)``."""
    inner = [_defense(section[part]) for part in ("release", "partition") if section.get(part)]
    name = section["name"] + " once" * bool(section.get("once"))
    return f"{name} ({', '.join(inner)})" if inner else name
