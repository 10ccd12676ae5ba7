"""A CSV or Parquet table, documented in docs/scores.md: one row per attack and candidate."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float

from privkit import plug
from privkit.errors import InputError
from privkit.scorefiles._base import AbstractScoreFile, Direction, Evaluation, Pairing, Scored

Columns = Mapping[str, np.ndarray]
"""Columns of a table, or of some of its rows, by name."""

_NEEDED = ("attack", "member_has", "member", "score")
_OPTIONAL = ("candidate", "release", "model", "data")
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "1.0": True, "0.0": False}


class LongTable(AbstractScoreFile):
    """CSV or Parquet with columns attack, member_has, member and score."""

    looks_like: ClassVar[str] = (
        "CSV or Parquet with columns attack, member_has, member and score, if known candidate, release, model, data "
        "(docs/scores.md)"
    )

    def recognises(self, document: Any) -> bool:
        """Return whether it is a table."""
        import pandas as pd

        return isinstance(document, pd.DataFrame)

    def read(self, document: Any, path: Path) -> Evaluation:
        """Return the evaluation; with candidates, each attack's rows are put in their order."""
        given = {str(name): document[name].to_numpy() for name in document.columns}
        _check(given)
        table = {**given, "member": _members(given["member"]), "score": _scores(given["score"])}
        names = list(dict.fromkeys(table["attack"].tolist()))
        if "candidate" in table:
            table["candidate"] = _texts(table["candidate"])
        parts = {name: _rows(table, table["attack"] == name) for name in names}
        pairing = Pairing.ASSUMED
        if "candidate" in table:
            parts = {name: _in_order(name, part) for name, part in parts.items()}
            asked = [list(zip(part["candidate"], part["member"], strict=True)) for part in parts.values()]
            pairing = Pairing.STATED if all(one == asked[0] for one in asked) else Pairing.DIFFERENT
        return Evaluation(
            attacks=[_scored(name, part) for name, part in parts.items()],
            pairing=pairing,
            model=_one(table, "model"),
            data=_one(table, "data"),
        )


def _check(table: Columns) -> None:
    """Refuse a column that is missing or unknown, and a text that is empty."""
    import pandas as pd

    missing = [name for name in _NEEDED if name not in table]
    if missing:
        raise InputError(f"column {missing[0]!r} is missing; add it.")
    odd = [name for name in table if name not in (*_NEEDED, *_OPTIONAL)]
    if odd:
        raise InputError(plug.unknown_key(odd[0], odd[0], known=[*_NEEDED, *_OPTIONAL]))
    for name in table.keys() - {"score"}:
        empty = np.flatnonzero(pd.isna(table[name]))
        if empty.size:
            raise InputError(
                f"{name} in row {empty[0] + 1} is empty; fill it in, or leave the whole column out."
            )


def _members(given: np.ndarray) -> Bool[np.ndarray, " R"]:
    truths = [_TRUTHS.get(str(value).lower()) for value in given]
    if None in truths:
        row = truths.index(None)
        raise InputError(
            f"member in row {row + 1} is {given[row]}; give true or 1 for a member, false or 0 for a non-member."
        )
    return np.array(truths, dtype=np.bool_)


def _scores(given: np.ndarray) -> Float[np.ndarray, " R"]:
    score_R = np.array([_number(value) for value in given], dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(score_R))
    if bad.size:
        raise InputError(
            f"score in row {bad[0] + 1} is {given[bad[0]]}; give a finite number, or leave that candidate out."
        )
    return score_R


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _rows(table: Columns, chosen: np.ndarray) -> Columns:
    """Return some rows, chosen by a mask or in an order."""
    return {name: column[chosen] for name, column in table.items()}


def _in_order(attack: str, part: Columns) -> Columns:
    """Return one attack's rows in the order of the candidates, each of which it scores once."""
    ids, counts = np.unique(part["candidate"], return_counts=True)
    if counts.max() > 1:
        twice = ids[counts.argmax()]
        if len(np.unique(part["member"][part["candidate"] == twice])) > 1:
            raise InputError(
                f"attack {attack!r} scores candidate {str(twice)!r} as a member and as a non-member; remove one, or "
                "give two candidates two names."
            )
        raise InputError(f"attack {attack!r} scores candidate {str(twice)!r} twice; give one score for each.")
    return _rows(part, np.argsort(part["candidate"]))


def _scored(attack: str, part: Columns) -> Scored:
    declared = list(dict.fromkeys(map(str, part["member_has"])))
    if len(declared) > 1 or declared[0] not in list(Direction):
        raise InputError(
            f"member_has of attack {attack!r} is {' and '.join(map(repr, declared))}; give 'higher' in all of its "
            "rows, or 'lower'."
        )
    members, others = _rows(part, part["member"]), _rows(part, ~part["member"])
    return Scored(
        attack=str(attack),
        member_has=Direction(declared[0]),
        members=members["score"],
        non_members=others["score"],
        releases=(_texts(members["release"]), _texts(others["release"])) if "release" in part else None,
    )


def _texts(ids: np.ndarray) -> np.ndarray:
    return np.array([str(id) for id in ids], dtype=np.str_)


def _one(table: Columns, column: str) -> str | None:
    """Return the one value of a column, or nothing if it is not there."""
    if column not in table:
        return None
    values = list(dict.fromkeys(table[column].tolist()))
    if len(values) > 1:
        raise InputError(
            f"column {column!r} holds {values[0]!r} and {values[1]!r}; one file is one evaluation, write one for each."
        )
    return str(values[0])
