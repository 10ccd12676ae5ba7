"""One table of the attacks of several audits, as papers print them; every number at full precision."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from reports import attacks_once, audit_table, numbers
from reports.attacks_once import Audit
from reports.findings import CellFindings, Findings
from reports.table import Column, Table

CLAIM = ("epsilon", "epsilon_reason", "delta", "relation", "covered")
"""Keys of what :func:`about` says of a promise, beside those that are printed."""

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
    "tightness_text",
)
_SEEDS = Column(key="seeds", title="seeds", show=numbers.count, right=True)


def attacks(audits: Sequence[Audit]) -> Table:
    """Return one row per run, cell and attack; what two audits found alike of the same runs is one row.

    Args:
        audits: what each run is called, and its findings.

    Raises:
        InputError: two audits share some of the runs of a cell, not all.
    """
    audits, said = attacks_once.once(audits)
    known = {column.key: column for column in audit_table.ATTACKS}
    columns = (*_CELL, *(known[key] for key in _ATTACK_KEYS), _SEEDS)
    rows, keys = [], list[str]()
    for run, findings in audits:
        table = audit_table.attacks(findings)
        known_of = {cell.name: _of(run, cell, findings) for cell in findings.cells}
        rows += [{**row, **known_of[row["cell"]]} for row in table.rows]
        keys = [*dict.fromkeys([*keys, *table.keys()])]
    shown = {column.key for column in columns}
    extra = (*CLAIM, *(key for key in keys if key not in shown))
    return Table(columns=columns, rows=rows, extra=extra, notes=tuple(said))


def _of(run: str, cell: CellFindings, findings: Findings) -> dict[str, Any]:
    runs = findings.provenance.get("runs")
    config = runs.get(cell.name, {}).get("config", {}) if isinstance(runs, Mapping) else {}
    return about(run, cell.name, config, cell)


def about(run: str, name: str, config: Mapping[str, Any], found: CellFindings | None) -> dict[str, Any]:
    """Return what identifies a cell among several runs, and what an audit of it says that it promises.

    Args:
        run: the folder that it is in.
        name: of the cell.
        config: its configuration; empty if other code recorded it.
        found: by an audit, if there was one.
    """
    row = {"run": run, "cell": name, **_setting(config)}
    return row if found is None else row | _claimed(found)


def _claimed(cell: CellFindings) -> dict[str, Any]:
    claim = None if cell.promised is None else cell.promised.claim
    epsilon = 0.0 if claim is None else claim.epsilon
    return {
        "epsilon": epsilon,
        "epsilon_text": audit_table.epsilon_text(claim),
        "epsilon_reason": "" if claim is None or math.isfinite(epsilon) else claim.unbounded or "no promise",
        "delta": claim and claim.delta,
        "relation": claim and str(claim.relation),
        "covered": claim is None or claim.covered,
        "seeds": cell.seeds,
    }


def _setting(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the names of a cell's data set, method and defense; ``None`` if other code recorded it."""
    sections = {"data": "data", "framework": "method"}
    names = {key: (config.get(section) or {}).get("name") for key, section in sections.items()}
    return {**names, "defense": _defense(config["defense"]) if config.get("defense") else None}


def _defense(section: Mapping[str, Any]) -> str:
    """Return a defense's name, and in brackets what it is made of: ``vpp (random)``."""
    inner = [_defense(section[part]) for part in ("release", "partition") if section.get(part)]
    name = section["name"] + " once" * bool(section.get("once"))
    return f"{name} ({', '.join(inner)})" if inner else name
