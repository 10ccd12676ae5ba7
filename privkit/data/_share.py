"""Shares of every class, chosen by name: the same records whatever the folder, the order or the other shares."""

import hashlib

import numpy as np
from jaxtyping import Int64


def rank(name: str, *, purpose: str) -> bytes:
    """Return a number, as bytes, that a record is drawn by: as good as random, and the same everywhere."""
    return hashlib.sha256(f"{purpose}\0{name}".encode()).digest()


def of_each_class(
    labels: Int64[np.ndarray, " N"],
    names: tuple[str, ...],
    *,
    share: float,
    purpose: str,
    leave: int = 0,
) -> Int64[np.ndarray, " chosen"]:
    """Return, in ascending order, the rows of a share of every class, to the nearest whole record, at least one.

    A smaller share gives a subset of a larger one.

    Args:
        labels: class of each record.
        names: of each record, unique.
        share: more than 0, at most 1.
        purpose: two purposes choose independently.
        leave: records of every class that are never chosen, 0 or more.
    """
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        wanted = max(1, int(share * len(rows) + 0.5))
        ranked = sorted(rows.tolist(), key=lambda row: rank(names[row], purpose=purpose))
        chosen += ranked[: min(wanted, len(rows) - leave)]
    return np.array(sorted(chosen), np.int64)
