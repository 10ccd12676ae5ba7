"""The utility table: accuracy per domain, its mean and both spreads, and what each cell gains over a baseline."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from attacks.statistics.multiple import holm
from attacks.statistics.seeds import over_seeds
from reports import numbers, paper_tables
from reports.table import Column
from reports.utility_baseline import baseline, refuse_unknown
from reports.utility_beside import Beside, beside
from reports.utility_cells import UtilityCell, in_short
from reports.utility_notes import NotedTable, notes
from reports.utility_paired import Paired, paired
from reports.utility_published import TITLES, Published
from reports.utility_shown import Shown

MOST_DOMAINS = 8
"""Most domains that are printed; of more, the machine formats have the columns."""

_OVERLAP = (
    Column(key="overlap", title="true top-k chosen", show=numbers.rate_or_blank, right=True),
    Column(key="overlap_chance", title="by chance", show=numbers.rate_or_blank, right=True),
)
_EXTRA = (
    "source",
    "model",
    "avg",
    "avg_low",
    "avg_high",
    "avg_recomputed",
    "std_recomputed",
    "against",
    "difference",
    "difference_low",
    "difference_high",
    "p_t",
    "p_rank",
    "epsilon_promised",
    "promise_broken",
    "overlap_std",
    "bytes_per_round",
    "seconds",
    *paper_tables.CLAIM,
    "reason",
)


@dataclass(frozen=True, eq=False)
class _Compared:
    """A cell, the baseline it was set against (if any), their paired difference, and that from local training."""

    cell: UtilityCell
    against: UtilityCell | None
    found: Paired | None
    local: float | None
    reasons: tuple[str, ...]


def utility(
    cells: Sequence[UtilityCell],
    *,
    against: str = "igpp",
    published: Sequence[Published] = (),
    percent: bool = False,
    said: Sequence[str] = (),
) -> NotedTable:
    """Return one row per cell, and below a cell those published rows that are of its kind.

    Accuracy is a share of test records in the last round. Every p-value is two-sided, of differences paired by seed,
    and corrected by Holm over all rows of the table, each of the two tests by itself. What is published enters neither.

    Args:
        cells: in the order of the rows.
        against: what each is compared with: ``igpp``, ``none``, ``local_only`` or a cell's name.
        published: rows that may be printed.
        percent: print accuracies in percent; the values of CSV and JSON stay shares.
        said: sentences to print below it.

    Raises:
        InputError: ``against`` is neither a kind of baseline nor a cell.
    """
    refuse_unknown(against, cells)
    shown = Shown(percent=percent, fine=bool(published))
    compared = [_compared(cell, cells, against) for cell in cells]
    tests = [_corrected(compared, name) for name in ("p_t", "p_rank")]
    rows: list[dict[str, Any]] = []
    beside_after = _placed(cells, published)
    for i, one in enumerate(compared):
        rows.append(_measured(one, shown) | {"p_t_holm": tests[0][i], "p_rank_holm": tests[1][i]})
        rows += [_published(found, one.cell, shown) for found in beside_after[i]]
    return NotedTable(
        columns=_columns(cells, against, shown),
        rows=rows,
        extra=(*_more_domains(cells), *_EXTRA),
        notes=(*said, *notes(cells, rows)),
    )


def _compared(cell: UtilityCell, cells: Sequence[UtilityCell], against: str) -> _Compared:
    chosen, alone = baseline(cell, cells, against), baseline(cell, cells, "local_only")
    found = _difference_of(cell, chosen.cell)
    local = _difference_of(cell, alone.cell)
    note = chosen.reason or (found.note if found else "")
    return _Compared(
        cell=cell,
        against=chosen.cell,
        found=found,
        local=local and local.difference.mean,
        reasons=(
            f"minus {against}: {note}" if note else "",
            f"vs local: {alone.reason}" if alone.reason else "",
        ),
    )


def _difference_of(cell: UtilityCell, other: UtilityCell | None) -> Paired | None:
    return None if other is None or other is cell else paired(cell.by_seed, other.by_seed)


def _corrected(compared: Sequence[_Compared], test: str) -> list[float | None]:
    p_values = {str(i): one.found and getattr(one.found, test) for i, one in enumerate(compared)}
    return list(holm(p_values).adjusted.values())


def _placed(cells: Sequence[UtilityCell], published: Sequence[Published]) -> list[list[Beside]]:
    """Return, for each cell, the published rows to print after it: each once, after the last cell of its kind."""
    found = [beside(cell, published) for cell in cells]
    last = {(id(one.row), one.same_data): i for i, rows in enumerate(found) for one in rows}
    return [[one for one in rows if last[id(one.row), one.same_data] == i] for i, rows in enumerate(found)]


# ---------------------------------------------------------------------- columns


def _columns(cells: Sequence[UtilityCell], against: str, shown: Shown) -> tuple[Column, ...]:
    number = partial(Column, right=True)
    audited = any(cell.audited for cell in cells)
    return (
        *(Column(key=key, title=key) for key in ("run", "cell", "data")),
        Column(key="model_text", title="model", sort="model"),
        *(Column(key=key, title=key) for key in ("framework", "defense")),
        number(key="promised_text", title="ε promised", sort="epsilon_promised"),
        *([number(key="epsilon_text", title="ε spent", sort="epsilon")] if audited else []),
        *(number(key=f"domain_{name}", title=name, show=shown.rate_or_blank) for name in _printed(cells)),
        number(key="avg_text", title=f"AVG{shown.unit}", sort="avg"),
        number(key="std_text", title=f"STD over domains (sample){shown.unit}", sort="std_domains"),
        number(key="std_seeds", title=f"sd over seeds (sample){shown.unit}", show=shown.rate),
        number(key="interval_text", title="AVG, 95 % t interval over seeds", sort="avg_low"),
        number(key="seeds", title="seeds", show=numbers.count),
        number(
            key="difference_text",
            title=f"AVG − {against} [95 %], paired by seed{shown.unit}",
            sort="difference",
        ),
        number(key="p_t_holm", title="p, paired t (Holm)", show=_p_value),
        number(key="p_rank_holm", title="p, exact signed rank (Holm)", show=_p_value),
        *(
            []
            if against == "local_only"
            else [number(key="against_local", title=f"vs local{shown.unit}", show=shown.signed)]
        ),
        *(_OVERLAP if any(c.audited and c.audited.overlap for c in cells) else ()),
    )


def _domains(cells: Sequence[UtilityCell]) -> list[str]:
    return list(dict.fromkeys(name for cell in cells for name in cell.domains))


def _printed(cells: Sequence[UtilityCell]) -> list[str]:
    names = _domains(cells)
    return names if len(names) <= MOST_DOMAINS else []


def _more_domains(cells: Sequence[UtilityCell]) -> list[str]:
    printed = _printed(cells)
    return [
        *(f"domain_{name}" for name in _domains(cells) if name not in printed),
        "std_domains",
    ]


def _p_value(value: float | None) -> str:
    return "n/a" if value is None else numbers.p_value(value)


# ---------------------------------------------------------------------- rows


def _measured(one: _Compared, shown: Shown) -> dict[str, Any]:
    cell, over = one.cell, one.cell.accuracy
    spread = over_seeds(list(cell.domains.values())).std
    return {
        **paper_tables.about(cell.run, cell.name, cell.config, cell.audited),
        "source": "measured",
        "model": cell.model,
        "model_text": in_short(cell.config) or cell.model,
        "epsilon_promised": cell.promised,
        "promise_broken": "; ".join(cell.broken),
        "promised_text": _promised(cell),
        "seeds": len(cell.by_seed) or cell.runs,
        **{f"domain_{name}": value for name, value in cell.domains.items()},
        "avg": over.mean,
        "avg_low": over.low,
        "avg_high": over.high,
        "avg_text": shown.rate(over.mean),
        "std_domains": spread,
        "std_text": shown.rate(spread),
        "std_seeds": over.std,
        "interval_text": shown.span(over.low, over.high),
        **_difference(one, shown),
        "against_local": one.local,
        **_audited(cell),
        "seconds": cell.seconds,
        "reason": _reasons(one),
    }


def _promised(cell: UtilityCell) -> str:
    """Return the epsilon promised; in brackets where an assumption is broken, or it is only what the noise was for."""
    if cell.promised is None:
        return "" if cell.epsilon is None else f"({numbers.epsilon(cell.epsilon)})"
    text = numbers.epsilon(cell.promised)
    return f"({text})" if cell.broken else text


def _difference(one: _Compared, shown: Shown) -> dict[str, Any]:
    if one.found is None:
        return {"difference_text": "baseline" if one.against is one.cell else "n/a"}
    d = one.found.difference
    interval = "" if d.low is None else f" {shown.span(d.low, d.high, signed=True)}"
    return {
        "against": None if one.against is None else f"{one.against.run}: {one.against.name}",
        "difference": d.mean,
        "difference_low": d.low,
        "difference_high": d.high,
        "difference_text": f"{shown.signed(d.mean)}{interval}",
        "p_t": one.found.p_t,
        "p_rank": one.found.p_rank,
    }


def _audited(cell: UtilityCell) -> dict[str, Any]:
    found = cell.audited
    if found is None:
        return {"epsilon_reason": cell.unaudited}
    overlap = found.overlap
    return {
        "overlap": overlap and overlap.share.mean,
        "overlap_std": overlap and overlap.share.std,
        "overlap_chance": overlap and overlap.chance,
        "bytes_per_round": found.cost.bytes_per_round,
    }


def _reasons(one: _Compared) -> str:
    """Return why a number of a row is missing, or not what it seems; empty if none is."""
    cell, over = one.cell, one.cell.accuracy
    if over.mean is None:
        return "the run kept no metrics"
    reasons = [
        cell.ended,
        _lost(cell),
        f"sd over seeds: {over.note}" if over.std is None else "",
        "STD over domains: one domain does not show a spread" if len(cell.domains) < 2 else "",
        *one.reasons,
    ]
    return "; ".join(reason for reason in reasons if reason)


def _lost(cell: UtilityCell) -> str:
    """Return that some runs have no accuracy, or nothing."""
    read = len(cell.by_seed)
    return f"accuracy is of {read} of {cell.runs} seeds" if 0 < read < cell.runs else ""


def _published(found: Beside, cell: UtilityCell, shown: Shown) -> dict[str, Any]:
    """Return a published row as it was printed; of a stand-in's, the domains are others and are left out."""
    row = found.row
    data = (cell.config.get("data") or {})["name"]
    return {
        "source": "published",
        "run": "published",
        "cell": "published: VPDR, " + ", ".join([row.table, *(f"{k} {v}" for k, v in row.under.items())]),
        "data": row.said("dataset", TITLES[row.dataset])
        + ("" if found.same_data else f" (not the same data as {data})"),
        "model": "as published",
        "model_text": "as published",
        "framework": row.said("framework", row.framework),
        "defense": row.defense,
        "promised_text": "n/a",
        **({f"domain_{n}": float(v / 100) for n, v in row.domains.items()} if found.same_data else {}),
        "avg": float(row.avg / 100),
        "avg_recomputed": row.recomputed_avg and row.recomputed_avg / 100,
        "avg_text": shown.beside(row.avg, row.recomputed_avg, agrees=row.avg_agrees),
        "std_domains": row.std and float(row.std / 100),
        "std_recomputed": row.recomputed_std and row.recomputed_std / 100,
        "std_text": shown.beside(row.std, row.recomputed_std, agrees=row.std_agrees),
        "interval_text": "n/a",
        "difference_text": "n/a",
        "reason": "published without seeds, error bars and tests; epsilon 1 by a secondary source"
        + (f"; that your folder holds {TITLES[row.dataset]} is not checked" if found.same_data else ""),
    }
