"""The three answers side by side: what was promised, what can be taken, what it cost."""

import math
from collections.abc import Callable
from typing import Any

from accountant.claims import Claim
from reports import numbers, predicted
from reports.findings import CellFindings, Findings, Taken
from reports.table import Column, Table

PROMISED_AND_COST = (
    Column(key="cell", title="cell"),
    Column(key="verdict", title="verdict"),
    Column(key="epsilon_stated", title="ε promised", show=numbers.epsilon, right=True, rank=1),
    Column(key="epsilon_text", title="ε spent", right=True, sort="epsilon"),
    Column(key="delta", title="δ", show=numbers.delta, right=True, rank=4),
    Column(key="noise_ratio", title="noise / claimed", show=numbers.rate, right=True),
    Column(key="accuracy", title="accuracy", show=numbers.rate, right=True),
    Column(key="accuracy_std", title="std over seeds", show=numbers.rate, right=True, rank=2),
    Column(key="against_local", title="vs local", show=numbers.signed, right=True),
    Column(key="bytes_per_round", title="sent / round", show=numbers.size, right=True, rank=3),
    Column(key="seconds", title="s / run", show=numbers.seconds, right=True, rank=5),
)


def cells(findings: Findings) -> Table:
    """Return one row per cell: its promise, its verdict and its cost."""
    extra = (
        "epsilon",
        "covered",
        "relation",
        "unit",
        "method",
        "bound",
        "releases",
        "model",
        "seeds",
        "reasons",
        "by_domain",
        "overlap",
        "overlap_std",
        "overlap_chance",
        "ended",
    )
    return Table(columns=PROMISED_AND_COST, rows=[_cell_row(c) for c in findings.cells], extra=extra)


def epsilon_text(claim: Claim | None) -> str:
    """Return the epsilon of a claim, in brackets if it is no promise; 0 where nothing was released."""
    if claim is None:
        return numbers.epsilon(0.0)
    text = numbers.epsilon(claim.epsilon)
    return text if claim.covered or math.isinf(claim.epsilon) else f"({text})"


def _cell_row(cell: CellFindings) -> dict[str, Any]:
    claim = None if cell.promised is None else cell.promised.claim
    epsilon = 0.0 if claim is None else claim.epsilon
    covered = claim is None or claim.covered
    accuracy = cell.cost.accuracy
    return {
        "cell": cell.name,
        "verdict": cell.verdict.value,
        "epsilon_stated": None if cell.promised is None else cell.promised.stated,
        "epsilon": epsilon,
        "epsilon_text": epsilon_text(claim),
        "covered": covered,
        "delta": None if claim is None or math.isinf(epsilon) else claim.delta,
        "noise_ratio": None if cell.noise is None else cell.noise.ratio,
        "accuracy": None if accuracy is None else accuracy.mean,
        "accuracy_std": None if accuracy is None else accuracy.std,
        "against_local": cell.cost.against_local,
        "bytes_per_round": cell.cost.bytes_per_round,
        "seconds": cell.cost.seconds,
        "relation": None if claim is None else str(claim.relation),
        "unit": None if claim is None else claim.unit,
        "method": None if claim is None else claim.method,
        "bound": None if claim is None else str(claim.bound),
        "releases": None if claim is None else claim.releases,
        "model": cell.model,
        "seeds": cell.seeds,
        "reasons": "; ".join(cell.reasons),
        "overlap": cell.overlap and cell.overlap.share.mean,
        "overlap_std": cell.overlap and cell.overlap.share.std,
        "overlap_chance": cell.overlap and cell.overlap.chance,
        "ended": cell.ended,
        "by_domain": ", ".join(f"{name} {value:.3f}" for name, value in cell.cost.by_domain.items()),
    }


ATTACKS = (
    Column(key="cell", title="cell"),
    Column(key="attack", title="attack"),
    Column(key="tier", title="tier", rank=8),
    Column(key="auc_text", title="AUC [95 %]", right=True, sort="auc"),
    Column(key="auc_ceiling", title="AUC ceiling", show=numbers.rate_or_blank, right=True),
    Column(key="auc_one_round", title="AUC, one round", show=numbers.rate_or_blank, right=True, rank=6),
    Column(key="tpr_text", title="TPR at 1 % FPR [95 %]", right=True, rank=1, sort="tpr"),
    Column(key="tpr_null", title="no skill", show=numbers.rate, right=True, rank=5),
    Column(key="tpr_ceiling", title="TPR ceiling", show=numbers.rate_or_blank, right=True, rank=3),
    Column(key="fp_text", title="FP/N", right=True, rank=7, sort="fp"),
    Column(
        key="epsilon_low",
        title="ε ≥ (95 %)",
        show=lambda v: "" if v is None else f"{v:.3g}",
        right=True,
        rank=2,
    ),
    Column(
        key="tightness_text",
        title="share of claimed μ [95 %]",
        show=lambda v: v or "",
        right=True,
        rank=5,
        sort="tightness",
    ),
    Column(key="adjusted_p", title="Holm p above ceiling", show=numbers.p_value, right=True, rank=4),
)


def attacks(findings: Findings) -> Table:
    """Return one row per cell and attack, with interval, no-skill value and ceiling."""
    rows = [_attack_row(cell, found) for cell in findings.cells for found in cell.taken]
    return Table(columns=ATTACKS, rows=rows, extra=tuple(k for k in _NUMBERS if k not in _SHOWN))


_NUMBERS: dict[str, Callable[[Taken], Any]] = {
    "tier": lambda t: t.tier,
    "auc": lambda t: t.auc and t.auc.value,
    "auc_low": lambda t: t.auc and t.auc.low,
    "auc_high": lambda t: t.auc and t.auc.high,
    "auc_interval": lambda t: t.auc and t.auc.kind,
    "auc_null": lambda t: t.auc and t.auc.null,
    "auc_ceiling": lambda t: t.auc_ceiling,
    "auc_one_round": lambda t: _mean(t.by_round),
    "auc_macro": lambda t: t.macro_auc,
    "auc_predicted": lambda t: t.predicted,
    "auc_seed_std": lambda t: t.auc_by_seed and t.auc_by_seed.std,
    "seeds": lambda t: t.auc_by_seed and t.auc_by_seed.n,
    "n_members": lambda t: t.auc and t.auc.n_members,
    "n_non_members": lambda t: t.auc and t.auc.n_non_members,
    "tpr": lambda t: t.tpr and t.tpr.estimate.value,
    "tpr_low": lambda t: t.tpr and t.tpr.estimate.low,
    "tpr_high": lambda t: t.tpr and t.tpr.estimate.high,
    "tpr_interval": lambda t: t.tpr and t.tpr.estimate.kind,
    "tpr_null": lambda t: t.tpr and t.tpr.estimate.null,
    "tpr_ceiling": lambda t: t.tpr_ceiling,
    "tpr_p_no_skill": lambda t: t.tpr and t.tpr.estimate.p_value,
    "fp_allowed": lambda t: t.tpr and t.tpr.allowed,
    "fp": lambda t: t.tpr and t.tpr.confusion and t.tpr.confusion.false_positives,
    "threshold": lambda t: t.tpr and t.tpr.confusion and t.tpr.confusion.threshold,
    "threshold_source": lambda t: t.tpr and t.tpr.confusion and t.tpr.confusion.threshold_source,
    "advantage_held_out": lambda t: t.advantage and t.advantage.value,
    "advantage_low": lambda t: t.advantage and t.advantage.low,
    "advantage_high": lambda t: t.advantage and t.advantage.high,
    "f1_best": lambda t: t.best_f1 and t.best_f1.value,
    "f1_best_null": lambda t: t.best_f1 and t.best_f1.null,
    "f1_best_kind": lambda t: t.best_f1 and t.best_f1.kind,
    "tightness": lambda t: t.tightness and t.tightness.value,
    "tightness_low": lambda t: t.tightness and t.tightness.low,
    "tightness_high": lambda t: t.tightness and t.tightness.high,
    "epsilon_low": lambda t: t.certificate and t.certificate.epsilon_low,
    "epsilon_low_method": lambda t: t.certificate and t.certificate.method,
    "adjusted_p": lambda t: t.adjusted_p,
    "reason": lambda t: t.reason or (t.auc.note if t.auc else ""),
}
_SHOWN = {column.key for column in ATTACKS}


def _mean(values: tuple[float | None, ...]) -> float | None:
    """Return the mean of the values that there are."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _attack_row(cell: CellFindings, found: Taken) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": cell.name, "attack": found.attack}
    row |= {key: get(found) for key, get in _NUMBERS.items()}
    row["auc_text"] = predicted.beside(found, numbers.interval(row["auc"], row["auc_low"], row["auc_high"]))
    row["tpr_text"] = numbers.interval(row["tpr"], row["tpr_low"], row["tpr_high"])
    if found.tightness is not None:
        row["tightness_text"] = numbers.interval(
            row["tightness"], row["tightness_low"], row["tightness_high"]
        )
    row["fp_text"] = "n/a" if row["fp"] is None else f"{row['fp']}/{row['n_non_members']}"
    return row
