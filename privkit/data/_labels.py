"""Labels as files have them: whole numbers, one per record, that are classes; nothing is rounded to one."""

from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64

from privkit.errors import InputError


def whole(values: Any, *, path: Path, what: str = "labels") -> Int64[np.ndarray, " N"]:
    """Return labels in one row.

    Args:
        values: a list of whole numbers, or an array of them.
        path: for messages.
        what: what they are called there.

    Raises:
        InputError: one is no whole number of 64 bits.
    """
    if isinstance(values, list | tuple) and all(isinstance(v, int | np.integer) for v in values):
        try:
            return np.array(values, np.int64).reshape(-1)
        except OverflowError:
            pass
    elif isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return values.astype(np.int64).reshape(-1)
    raise InputError(f"{path} holds no whole numbers under {what!r}; get it again.")


def refuse_odd(labels: Int64[np.ndarray, " N"], *, count: int, classes: int, path: Path) -> None:
    """Refuse labels that are not one per image, not from 0 to ``classes`` - 1, or none at all.

    Raises:
        InputError: they are.
    """
    if len(labels) != count:
        raise InputError(f"{path} has {len(labels):,} labels for {count:,} images; get both again.")
    if not count:
        raise InputError(f"{path} holds no records; get it again.")
    odd = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(odd):
        raise InputError(
            f"{path} has label {labels[odd[0]]} (record {odd[0]}); wanted are 0 to {classes - 1}, get it again."
        )
