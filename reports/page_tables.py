"""The tables of the page, one for each question."""

from collections.abc import Mapping
from typing import Any

from accountant.bound import Bound
from reports import audit_table, numbers
from reports.findings import CellFindings, Findings, Inversion
from reports.table import Column, Table


def _number(key: str, title: str, **changes: Any) -> Column:
    return Column(**{"key": key, "title": title, "show": numbers.rate, "right": True} | changes)


def promised(findings: Findings) -> Table:
    """Return one row per cell: what was promised, for whom, and what of it holds."""
    return Table(
        columns=(
            Column(key="cell", title="cell"),
            _number("epsilon_stated", "ε promised", show=numbers.epsilon),
            _number("epsilon_text", "ε spent", show=str, sort="epsilon"),
            _number("delta", "δ", show=numbers.delta),
            Column(key="relation", title="neighbours"),
            Column(key="unit", title="unit"),
            Column(key="computed", title="computed as"),
            _number("releases", "releases", show=numbers.count),
            _number("noise_ratio", "noise / claimed"),
            Column(key="broken", title="broken assumptions"),
        ),
        rows=[
            {**row, "computed": _computed(cell), "broken": _broken(cell)}
            for cell, row in zip(findings.cells, audit_table.cells(findings).rows, strict=True)
        ],
    )


def _computed(cell: CellFindings) -> str | None:
    """Return how an epsilon was computed, and whether it could be smaller."""
    if cell.promised is None:
        return None
    claim = cell.promised.claim
    return claim.method if claim.bound is Bound.EXACT else f"{claim.bound}, {claim.method}"


def _broken(cell: CellFindings) -> str:
    if cell.promised is None:
        return "none: nothing was released"
    claim = cell.promised.claim
    reasons = list(dict.fromkeys(broken.id for broken in claim.broken))
    return "; ".join(reasons) or claim.unbounded or "none"


_OVERLAP = (
    _number("overlap", "true top-k chosen", show=numbers.rate_or_blank),
    _number("overlap_chance", "by chance", show=numbers.rate_or_blank),
)


def cost(findings: Findings) -> Table:
    """Return one row per cell: accuracy, with its spread and per domain, bytes and time."""
    domains = list(dict.fromkeys(name for cell in findings.cells for name in cell.cost.by_domain))
    rows = audit_table.cells(findings).rows
    return Table(
        columns=(
            Column(key="cell", title="cell"),
            _number("accuracy", "accuracy"),
            _number("accuracy_std", "std over seeds"),
            _number("seeds", "seeds", show=numbers.count),
            _number("against_local", "vs local", show=numbers.signed),
            *(_number(f"domain {name}", name) for name in domains),
            *(_OVERLAP if any(cell.overlap for cell in findings.cells) else ()),
            _number("bytes_per_round", "sent / round", show=numbers.size),
            _number("seconds", "s / run", show=numbers.seconds),
        ),
        rows=[
            {**row, **{f"domain {name}": value for name, value in cell.cost.by_domain.items()}}
            for cell, row in zip(findings.cells, rows, strict=True)
        ],
    )


INVERSIONS = (
    Column(key="cell", title="cell"),
    Column(key="attack", title="attack"),
    Column(key="tier", title="tier"),
    _number("cosine", "cosine"),
    _number("cosine_random", "floor: random direction"),
    _number("cosine_between", "floor: other classes"),
    _number("centred", "centred cosine"),
    _number("cosine_released", "to what was released"),
    _number("cffd", "cFFD", show=numbers.rounded),
    _number("cffd_random", "floor: random direction", show=numbers.rounded),
    _number("cffd_least", "least possible", show=numbers.rounded),
    _number("top1_text", "Top-1 [95 %]", show=str, sort="top1"),
    _number("top1_null", "no skill"),
    _number("top1_undone", "no attack made"),
    _number("psnr", "PSNR, dB", show=numbers.rounded),
    _number("psnr_random", "floor: random direction", show=numbers.rounded),
    _number("psnr_class", "floor: mean picture of the class", show=numbers.rounded),
    _number("ssim", "SSIM"),
    _number("ssim_random", "floor: random direction"),
    _number("ssim_class", "floor: mean picture of the class"),
    _number("rank", "rank of nearest member", show=numbers.rounded),
    _number("rank_chance", "no skill", show=numbers.rounded),
)


def inversions(findings: Findings) -> Table:
    """Return one row per cell and inversion: the three published measures, each beside its floor."""
    rows = [_inversion(cell, found) for cell in findings.cells for found in cell.inversions]
    extra = ("targets", "seeds", "who", "target", "budget", "top1", "top1_low", "top1_high", "reason")
    return Table(columns=INVERSIONS, rows=rows, extra=extra)


def _inversion(cell: CellFindings, found: Inversion) -> Mapping[str, Any]:
    row: dict[str, Any] = {"cell": cell.name, "targets": len(found.rebuilt)}
    names = {c.key for c in INVERSIONS} | {"seeds", "who", "target", "budget", "reason"}
    row |= {name: value for name, value in vars(found).items() if name in names}
    top1 = found.top1
    row |= {
        "top1": top1 and top1.value,
        "top1_low": top1 and top1.low,
        "top1_high": top1 and top1.high,
        "top1_null": top1 and top1.null,
    }
    return row | {"top1_text": numbers.interval(row["top1"], row["top1_low"], row["top1_high"])}
