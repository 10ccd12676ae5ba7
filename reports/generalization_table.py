"""The generalization table: accuracy of clients, and of newcomers from the domain that was held out."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

from attacks.statistics.seeds import OverSeeds, over_seeds
from reports import numbers
from reports.generalization import Generalization, by_identity
from reports.generalization_published import DOMAINS, PublishedGeneralization
from reports.table import Column, Table
from reports.utility_cells import in_short
from reports.utility_notes import NotedTable
from reports.utility_shown import Shown

ALL = "all"
MOST_DOMAINS = 8
"""Most domains that are printed; of more, the machine formats have the columns."""
_KEYS = {"g": "G", "p": "P", "c": "C"}
_GAUGE = (
    "G reads the shared head without a map. Turning head and maps together changes no client and every G: where maps "
    "begin decides it (docs/fedot.md)."
)


def generalization_table(
    found: Sequence[Generalization],
    *,
    published: Iterable[PublishedGeneralization] = (),
    percent: bool = False,
) -> Table:
    """Return, of each configuration, one row per domain held out and one of all: G, P and C.

    G is the mean accuracy on domains held out, P that of clients, C that of all N x N. Columns of domains are
    accuracies on them; on the one held out, that of the shared model without a map.

    Args:
        found: in the order of the rows.
        published: rows to print below them.
        percent: print accuracies in percent; the values of CSV and JSON stay shares.
    """
    shown = Shown(percent=percent)
    rows = [row for one in found for row in _rows(one, shown)]
    beside = [_published(row, shown) for row in published]
    mapped = any(one.condition is not None for one in found)
    return NotedTable(
        columns=_columns(found, shown),
        rows=[*rows, *beside],
        extra=_extra(found),
        notes=((_GAUGE,) if mapped else ()) + ((_BESIDE,) if beside else ()),
    )


_BESIDE = (
    "Published rows are means over five data sets under CLIP ViT-B/32, none of which is here, and over three seeds, "
    f"without spreads. That N is {DOMAINS} is inferred: with it, five rows obey C = (G + (N - 1) P) / N within 0.02."
)


def _columns(found: Sequence[Generalization], shown: Shown) -> tuple[Column, ...]:
    number = partial(Column, right=True)
    return (
        *(Column(key=key, title=key) for key in ("run", "cell", "data")),
        Column(key="model_text", title="model", sort="model"),
        Column(key="framework", title="framework"),
        Column(key="unseen", title="held out"),
        *(number(key=f"on_{name}", title=name, show=shown.rate_or_blank) for name in _printed(found)),
        *(number(key=f"{key}_text", title=f"{title}{shown.unit}", sort=key) for key, title in _KEYS.items()),
        number(key="seeds", title="seeds", show=_count_or_blank),
        number(key="conflict", title="cosine of head updates", show=_blank(numbers.signed)),
        number(key="condition", title="condition number", show=_blank(numbers.rounded)),
        number(key="orthogonality", title="max |MᵀM − I|", show=_blank(lambda value: f"{value:.0e}")),
    )


def _blank(show: Any) -> Any:
    return lambda value: "" if value is None else show(value)


_count_or_blank = _blank(numbers.count)


def _domains(found: Sequence[Generalization]) -> list[str]:
    return list(dict.fromkeys(name for one in found for name in one.domains))


def _printed(found: Sequence[Generalization]) -> list[str]:
    names = _domains(found)
    return names if len(names) <= MOST_DOMAINS else []


def _extra(found: Sequence[Generalization]) -> tuple[str, ...]:
    more = [f"on_{name}" for name in _domains(found) if name not in _printed(found)]
    spread = [f"{key}_{part}" for key in _KEYS for part in ("std", "low", "high")]
    return (*more, "source", "model", *_KEYS, *spread, "c_by_identity", "reason")


# ---------------------------------------------------------------------- rows


def _rows(one: Generalization, shown: Shown) -> Iterator[dict[str, Any]]:
    about = {
        "source": "measured",
        "run": one.run,
        "cell": one.name,
        "data": (one.config.get("data") or {}).get("name", ""),
        "model": one.model,
        "model_text": in_short(one.config),
        "framework": (one.config.get("method") or {}).get("name", ""),
        "seeds": len(one.matrices),
    }
    matrices = np.stack(list(one.matrices.values()))
    for o, name in enumerate(one.domains):
        if np.isnan(matrices[:, o]).all():
            continue
        row = {f"on_{other}": _value(matrices[:, o, i]) for i, other in enumerate(one.domains)}
        yield {**about, "unseen": name, **row, **{f"{key}_text": "" for key in _KEYS}}
    yield {**about, "unseen": ALL, **_summary(one, shown)}


def _summary(one: Generalization, shown: Shown) -> dict[str, Any]:
    by_seed = (one.generalization(), one.personalization(), one.comprehensive())
    over = {key: over_seeds(list(values.values())) for key, values in zip(_KEYS, by_seed, strict=True)}
    row: dict[str, Any] = {}
    for key, found in over.items():
        row |= {key: found.mean, f"{key}_std": found.std, f"{key}_low": found.low, f"{key}_high": found.high}
        row[f"{key}_text"] = _spread(found, shown)
    return row | {
        "c_by_identity": by_identity(over["g"].mean, over["p"].mean, len(one.domains)),
        "conflict": one.conflict,
        "condition": one.condition,
        "orthogonality": one.orthogonality,
        "reason": _reason(one),
    }


def _spread(found: OverSeeds, shown: Shown) -> str:
    """Return a mean with the standard deviation over seeds."""
    return (
        shown.rate(found.mean) if found.std is None else f"{shown.rate(found.mean)} ± {shown.rate(found.std)}"
    )


def _value(over_seeds_S: np.ndarray) -> float | None:
    return None if np.isnan(over_seeds_S).any() else float(over_seeds_S.mean())


def _reason(one: Generalization) -> str:
    """Return why a number is missing; empty if none is."""
    matrices = np.stack(list(one.matrices.values()))
    empty = [name for o, name in enumerate(one.domains) if np.isnan(matrices[:, o]).all()]
    if empty:
        return f"not held out: {', '.join(empty)}"
    if np.isnan(np.diagonal(matrices, axis1=1, axis2=2)).all():
        return "what the server sends is no model for newcomers"
    return "some seeds did not hold out every domain" if np.isnan(matrices).any() else ""


def _published(row: PublishedGeneralization, shown: Shown) -> dict[str, Any]:
    values = {"g": row.g, "p": row.p, "c": row.c}
    return {
        "source": "published",
        "run": "published",
        "cell": "published: FedOT, main table",
        "data": "five data sets (not the same data)",
        "model": "as published",
        "model_text": "as published",
        "framework": row.method,
        "unseen": ALL,
        **{key: _share(value) for key, value in values.items()},
        "g_text": shown.beside(row.g, None, agrees=True),
        "p_text": shown.beside(row.p, None, agrees=True),
        "c_text": _printed_c(row, shown),
        "c_by_identity": None if row.given is None else row.given / 100,
        "reason": row.note,
    }


def _share(value: Decimal | None) -> float | None:
    return None if value is None else float(value / 100)


def _printed_c(row: PublishedGeneralization, shown: Shown) -> str:
    """Return C as printed, and what G and P give where that is something else."""
    text = shown.beside(row.c, None, agrees=True)
    if row.agrees:
        return text
    given = shown.beside(Decimal(str(round(row.given or 0.0, 2))), None, agrees=True)
    return f"{text} (its G and P give {given})"
