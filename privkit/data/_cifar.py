"""The batches of CIFAR-10 and CIFAR-100, as pickles of Python 2 or as plain bytes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.data import _labels, _pickle, _unpacked
from privkit.data._base import Labelled
from privkit.errors import InputError

SIDE = 32
VALUES = 3 * SIDE * SIDE
LARGEST = 2**30
"""Bytes of a file; the largest that is published has 154 million."""


def joined(batches: Iterable[Labelled]) -> Labelled:
    """Return the records of several batches, one after the other."""
    kept = list(batches)
    return Labelled(np.concatenate([b.records for b in kept]), np.concatenate([b.labels for b in kept]))


def pickled(path: Path, *, key: str, classes: int) -> Labelled:
    """Return a batch of the Python version: colour images, uint8 of shape [N, 32, 32, 3], and their classes.

    Args:
        path: the file.
        key: under which its labels are.
        classes: labels are less.

    Raises:
        InputError: the file is damaged, names code, or is no such batch.
    """
    found = _pickle.read(path)
    values, labels = _entry(found, "data", path), _entry(found, key, path)
    if not isinstance(values, np.ndarray) or values.dtype != np.uint8 or values.shape[1:] != (VALUES,):
        raise InputError(f"{path} holds no images of {VALUES} bytes under 'data'; get it again.")
    return _batch(values, _labels.whole(labels, path=path, what=key), classes=classes, path=path)


def binary(path: Path, *, before: int, column: int, classes: int) -> Labelled:
    """Return a batch of the binary version: per record some label bytes, then red, green and blue.

    Args:
        path: the file.
        before: label bytes per record.
        column: which of them is the class.
        classes: labels are less.

    Raises:
        InputError: the file is no whole number of records, larger than 1 GiB, or a label is no class.
    """
    content = np.frombuffer(_unpacked.read(path, largest=LARGEST), np.uint8)
    if len(content) % (before + VALUES) or not len(content):
        raise InputError(
            f"{path} has {len(content):,} bytes, not a multiple of {before + VALUES}; it is damaged, get it again."
        )
    rows = content.reshape(-1, before + VALUES)
    return _batch(rows[:, before:], rows[:, column].astype(np.int64), classes=classes, path=path)


def _batch(
    values: UInt8[np.ndarray, "N values"], labels: Int64[np.ndarray, " M"], *, classes: int, path: Path
) -> Labelled:
    """Return a batch; lengths that differ, and labels that are no class, are refused."""
    _labels.refuse_odd(labels, count=len(values), classes=classes, path=path)
    planes = values.reshape(-1, 3, SIDE, SIDE)
    return Labelled(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels)


def _entry(batch: Any, key: str, path: Path) -> Any:
    """Return what a dict holds under a key; Python 2 wrote it as bytes."""
    found = batch if isinstance(batch, dict) else {}
    for name in (key, key.encode()):
        if name in found:
            return found[name]
    raise InputError(f"{path} holds nothing under {key!r}; it is no batch of CIFAR, get it again.")
