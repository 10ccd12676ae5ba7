"""One row per defense and strength: ProjRes, the best rival and the best adaptive attack, and what it costs."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from attacks._base import Family
from privkit.errors import InputError
from reports import defense_cells, numbers
from reports.attacks_once import Audit
from reports.defense_cells import FAMILIES, SIGNIFICANCE, DefenseCell, Tried
from reports.defense_sentences import sentences
from reports.findings import Findings
from reports.table import Column
from reports.utility_notes import NotedTable

_WHERE = ("run", "data", "backbone", "tuning")
_NUMBERS = ("auc", "low", "high", "level", "tried", "tied", "chance")


def defenses(audits: Sequence[Audit]) -> tuple[NotedTable, list[DefenseCell]]:
    """Return the table over several audits, and the cells that it is made of.

    Raises:
        InputError: none of them is of the gradient lab, or two share some of the runs of a cell, not all.
    """
    cells, said = defense_cells.of_audits(audits)
    if not cells:
        names = ", ".join(run for run, _ in audits)
        raise InputError(
            f"{names} has no run that tunes a transformer, and this table is about its defenses; train one from a "
            "configuration with a tuning, such as configs/gradient-demo.yaml, or ask for privkit table attacks."
        )
    return table(cells, said=said), cells


def of_findings(findings: Findings) -> NotedTable:
    """Return the table of one audit; without rows where it is not of the gradient lab."""
    return table(defense_cells.of_findings("", findings))


def table(cells: Sequence[DefenseCell], *, said: Sequence[str] = ()) -> NotedTable:
    """Return one row per cell.

    Args:
        cells: in the order of the rows.
        said: sentences to print below it.
    """
    known = {id(cell): sentence for cell, sentence in sentences(cells)}
    rows = [_row(cell) | {"sentence": known.get(id(cell), "")} for cell in cells]
    numbered = [f"{family}_{key}" for family in FAMILIES for key in _NUMBERS]
    return NotedTable(
        columns=_columns(_WHERE if any(cell.cell.run for cell in cells) else _WHERE[1:]),
        rows=rows,
        extra=(
            "cell",
            "projection_attack",
            *numbered,
            "strength",
            "varied",
            "accuracy",
            *_ACCURACY,
            "sentence",
        ),
        notes=(*said, *notes(cells)) if cells else (),
        said_once=_WHERE,
    )


_ACCURACY = ("accuracy_low", "accuracy_high", "accuracy_over", "seeds")


def _columns(where: Sequence[str]) -> tuple[Column, ...]:
    number = partial(Column, right=True)
    return (
        *(Column(key=key, title=key, rank=4) for key in where),
        Column(key="defense", title="defense"),
        Column(key="setting", title="strength", sort="strength"),
        number(key="projection_text", title="ProjRes AUC [95 %]", sort="projection_auc"),
        *_best("rival", rank=2),
        *_best("adaptive", rank=1),
        number(key="ceiling", title="AUC ceiling", show=numbers.rate_or_blank),
        number(key="accuracy_text", title="accuracy [95 %]", sort="accuracy"),
        number(key="seconds", title="s / run", show=numbers.seconds, rank=3),
        number(key="bytes_per_round", title="sent / round", show=numbers.size, rank=3),
    )


def _best(family: Family, *, rank: int) -> tuple[Column, Column]:
    return (
        Column(key=f"{family}_attack", title=FAMILIES[family], rank=rank),
        Column(key=f"{family}_text", title=f"{family} AUC [95 %]", right=True, sort=f"{family}_auc"),
    )


def _row(cell: DefenseCell) -> dict[str, Any]:
    cost, accuracy = cell.found.cost, cell.accuracy
    row: dict[str, Any] = {
        "run": cell.cell.run,
        "cell": cell.cell.name,
        "data": cell.data,
        "backbone": cell.backbone,
        "tuning": cell.tuning,
        "defense": cell.defense,
        "setting": cell.setting,
        "varied": cell.varied,
        "strength": cell.strength,
        "ceiling": cell.ceiling,
        "accuracy": accuracy and accuracy.mean,
        "accuracy_low": accuracy and accuracy.low,
        "accuracy_high": accuracy and accuracy.high,
        "accuracy_over": cell.accuracy_over,
        "seeds": cell.found.seeds,
        "seconds": cost.seconds,
        "bytes_per_round": cost.bytes_per_round,
    }
    row["accuracy_text"] = numbers.interval(row["accuracy"], row["accuracy_low"], row["accuracy_high"])
    for family in FAMILIES:
        row |= _found(family, cell.best.get(family))
    return row


def _found(family: Family, best: Tried | None) -> dict[str, Any]:
    """Return what the best attack of a family found; nothing where none gave a number."""
    if best is None:
        return {f"{family}_attack": None}
    auc, found = best.compared.auc, best.compared
    values = {"auc": auc.value, "low": auc.low, "high": auc.high, "level": auc.level}
    values |= {"tried": found.tried, "tied": found.tied, "chance": best.chance, "attack": best.taken.attack}
    text = f"{numbers.rate(auc.value)}, all alike" if found.tied else best.text
    return {f"{family}_{key}": value for key, value in {**values, "text": text}.items()}


def notes(cells: Sequence[DefenseCell]) -> list[str]:
    """Return what a reader of these tables and figures must know."""
    return [
        *_chosen(cells),
        "Whether an attack beats chance is tested by drawing the members of each upload anew among its candidates, "
        f"with Holm over all attacks on a cell at {SIGNIFICANCE:g}; intervals ask about other uploads too, and are "
        "wide where few were seen.",
        *(
            ["A ceiling is the AUC that noise allows a test of one batch."]
            if any(c.ceiling for c in cells)
            else []
        ),
        *_accuracies(cells),
    ]


def _chosen(cells: Sequence[DefenseCell]) -> Iterator[str]:
    """Yield how many attacks each best one was chosen among."""
    for family, title in FAMILIES.items():
        counts = sorted({t.compared.tried for c in cells for t in c.tried if t.taken.family == family})
        if counts[-1:] > [1]:
            names = sorted({t.taken.attack for c in cells for t in c.tried if t.taken.family == family})
            yield (
                f"{title[0].upper()}{title[1:]} is the attack with the largest AUC of {' or '.join(map(str, counts))} "
                f"({', '.join(names)}); its interval allows for that choice, at 95 % for all of them together "
                "(Bonferroni)."
            )


def _accuracies(cells: Sequence[DefenseCell]) -> Iterator[str]:
    """Yield what the intervals of accuracies are over, and where there is none."""
    over = sorted({c.accuracy_over for c in cells if c.accuracy is not None and c.accuracy.low is not None})
    if over:
        yield f"Accuracy is that of the last round; its intervals are t intervals over {' or '.join(over)}."
    if any(c.accuracy is not None and c.accuracy.low is None for c in cells):
        yield "An accuracy without an interval is of one seed and one set of test records; train with --seeds 5, say."
