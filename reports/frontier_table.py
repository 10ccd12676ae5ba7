"""Accuracy against what the strongest attack takes, for every system that was audited on the same data."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from reports import frontier_cells, numbers
from reports.attacks_once import Audit
from reports.frontier_cells import FrontierCell
from reports.paper_tables import about
from reports.table import Column
from reports.utility_notes import NotedTable

_SAID_ONCE = ("run", "data", "seeds")


def frontier_table(audits: Sequence[Audit]) -> tuple[NotedTable, list[FrontierCell]]:
    """Return one row per audited cell, and the cells that it is made of.

    Args:
        audits: what each run is called, and its findings.

    Raises:
        InputError: two audits share some of the runs of a cell, not all.
    """
    cells, said = frontier_cells.of_audits(audits)
    on = {id(one) for one in frontier_cells.frontier(cells)}
    rows = [_row(one, on=id(one) in on) for one in cells]
    extra = (
        "auc", "auc_low", "auc_high", "tier", "tried", "accuracy", "accuracy_low", "accuracy_high", "verdict",
        "epsilon", "epsilon_reason", "delta", "relation", "covered",
    )  # fmt: skip
    return NotedTable(
        columns=_columns(), rows=rows, extra=extra, notes=(*said, *_notes(cells)), said_once=_SAID_ONCE
    ), cells


def _columns() -> tuple[Column, ...]:
    number = partial(Column, right=True)
    return (
        Column(key="run", title="run", rank=4),
        Column(key="data", title="data"),
        Column(key="cell", title="cell"),
        Column(key="system", title="system"),
        Column(key="protected", title="defense"),
        number(key="epsilon_text", title="ε", sort="epsilon"),
        Column(key="attack", title="strongest attack", rank=1),
        number(key="auc_text", title="its AUC [95 %]", sort="auc"),
        number(key="ceiling", title="AUC ceiling", show=numbers.rate_or_blank),
        number(key="accuracy_text", title="accuracy [95 %]", sort="accuracy"),
        number(key="bytes_per_round", title="sent / round", show=numbers.size, rank=2),
        number(key="seconds", title="s / run", show=numbers.seconds, rank=3),
        Column(key="on_frontier", title="unbeaten"),
        number(key="seeds", title="seeds", show=numbers.count),
    )


def _row(one: FrontierCell, *, on: bool) -> dict[str, Any]:
    cost, best = one.found.cost, one.strongest
    auc = None if best is None else best.auc
    accuracy = one.accuracy
    row = about(one.cell.run, one.cell.name, one.cell.config, one.found) | {
        "data": one.data,
        "system": one.system,
        "protected": frontier_cells.defense_of(one),
        "attack": "nothing is sent" if one.unattacked else best and best.attack,
        "tier": best and best.tier,
        "tried": one.tried,
        "auc": one.auc,
        "auc_low": auc and auc.low,
        "auc_high": auc and auc.high,
        "ceiling": one.ceiling,
        "accuracy": accuracy and accuracy.mean,
        "accuracy_low": accuracy and accuracy.low,
        "accuracy_high": accuracy and accuracy.high,
        "bytes_per_round": cost.bytes_per_round,
        "seconds": cost.seconds,
        "on_frontier": "yes" if on else "",
        "verdict": one.found.verdict.value,
        "seeds": one.found.seeds,
    }
    row["auc_text"] = numbers.interval(row["auc"], row["auc_low"], row["auc_high"])
    row["accuracy_text"] = numbers.interval(row["accuracy"], row["accuracy_low"], row["accuracy_high"])
    return row


def _notes(cells: Sequence[FrontierCell]) -> list[str]:
    tuned = any("tuning" in one.cell.config for one in cells)
    other = any("tuning" not in one.cell.config for one in cells)
    notes = [
        "Strongest is the attack on records with the largest AUC, of those whose attacker has what a server has; its "
        "interval is of that attack alone and does not allow for the choice. Canaries and insiders are left out.",
        "Unbeaten are cells to which no other of the same data set is better in accuracy or AUC without being worse in "
        "the other, by the measured values: neighbours within their intervals are not told apart.",
    ]
    if tuned and other:
        notes.append(
            "Attacks on gradients ask whether a record is in the batch of a round, all others whether it is among a "
            "client's records: the same AUC is not the same harm."
        )
    return notes
