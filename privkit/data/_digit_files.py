"""The public files of the digit data sets: idx, libsvm text, MATLAB, and FedBN's pickles."""

import io
import math
import re
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int64, UInt8

from privkit.data import _idx, _labels, _pickle, _unpacked
from privkit.errors import InputError

CLASSES = 10
USPS_SIDE = 16
USPS_LARGEST = 2**27
"""Bytes of a file of USPS, unpacked; the published ones have some 20 million."""
SVHN_LARGEST = 2**30
"""Values of a file of SVHN; the larger of the two that are read has 225 million."""
NUMERIC = frozenset(
    {"double", "single", "logical"} | {f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64)}
)

Digits = tuple[UInt8[np.ndarray, "N ..."], Int64[np.ndarray, " N"]]
"""Images of shape [N, height, width] or [N, height, width, 3], and the class of each."""


def idx(images: Path, labels: Path) -> Digits:
    """Return MNIST as its authors published it."""
    return _idx.pair(images, labels, classes=CLASSES)


def libsvm(path: Path) -> Digits:
    """Return USPS as libsvm publishes it: per line a label from 1 to 10 and ``index:value``, values in [-1, 1].

    Label 1 is digit 0. A value v becomes the grey level 255 (v + 1) / 2, rounded down; a value that is left out
    is 0.

    Raises:
        InputError: the file is damaged, larger than 128 MiB unpacked, or a line is not as above.
    """
    labels, rows = [], []
    for number, line in enumerate(io.BytesIO(_unpacked.read(path, largest=USPS_LARGEST)), start=1):
        try:
            label, row = _digit(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}; get it again.") from None
        labels.append(label)
        rows.append(row)
    _labels.refuse_odd(np.array(labels, np.int64), count=len(rows), classes=CLASSES, path=path)
    grey = ((np.stack(rows) + 1) / 2 * 255).astype(np.uint8)
    return grey.reshape(-1, USPS_SIDE, USPS_SIDE), np.array(labels, np.int64)


def _digit(line: bytes) -> tuple[int, Float32[np.ndarray, " values"]]:
    """Return the digit and the values of a line."""
    label, *features = line.decode("ascii").split() or [""]
    if re.fullmatch(r"[0-9]{1,9}", label) is None:
        raise ValueError(f"{label[:20]!r} is no label from 1 to 10")
    values = np.zeros(USPS_SIDE * USPS_SIDE, np.float32)
    for feature in features:
        index, _, value = feature.partition(":")
        values[_place(int(index))] = _unit(float(value))
    return int(label) - 1, values


def _place(index: int) -> int:
    if not 1 <= index <= USPS_SIDE * USPS_SIDE:
        raise ValueError(f"feature {index} is not one of 1 to {USPS_SIDE * USPS_SIDE}")
    return index - 1


def _unit(value: float) -> float:
    if not -1 <= value <= 1:
        raise ValueError(f"value {value} is not between -1 and 1")
    return value


def matlab(path: Path) -> Digits:
    """Return SVHN as its authors published it: X of shape [32, 32, 3, N] and y, where 10 stands for digit 0.

    Raises:
        InputError: the file is damaged, too large, or holds something else.
    """
    from scipy.io import loadmat, whosmat

    try:
        _refuse_odd_variables(whosmat(path))
        found = loadmat(path, variable_names=("X", "y"))
        images, labels = np.moveaxis(found["X"], -1, 0), found["y"]
    except Exception as error:  # scipy's errors on damaged files share no base class
        raise InputError(f"{path} holds no X and y of SVHN ({error}); get it again.") from None
    _refuse_odd_images(images, path)
    if labels.dtype.kind == "f" and np.array_equal(labels, np.rint(labels)):
        labels = labels.astype(np.int64)  # numbers that MATLAB wrote itself are float64
    labels = _labels.whole(labels, path=path, what="y")
    digits = np.where(labels == CLASSES, 0, np.where(labels == 0, -1, labels))
    _labels.refuse_odd(digits, count=len(images), classes=CLASSES, path=path)
    return images, digits


def _refuse_odd_variables(found: list[tuple[str, tuple[int, ...], str]]) -> None:
    """Refuse X and y that are no numbers, or too many of them, before they are unpacked."""
    for name, shape, kind in found:
        if name in ("X", "y") and (kind not in NUMERIC or math.prod(shape) > SVHN_LARGEST):
            raise ValueError(f"{name} is {kind} of shape {list(shape)}")


def pickled(*paths: Path) -> Digits:
    """Return the digits that FedBN published: pairs of images and labels, one after the other.

    Raises:
        InputError: a file is damaged, names code, or holds something else.
    """
    parts = [_pickled(path) for path in paths]
    if len({images.shape[1:] for images, _ in parts}) > 1:
        raise InputError(f"{paths[0].parent} holds images of different sizes; get its files again.")
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])


def _pickled(path: Path) -> Digits:
    pair = _pickle.read(path)
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], np.ndarray):
        raise InputError(f"{path} is not a pair of images and labels; get it again.")
    images, numbers = pair[0], _labels.whole(pair[1], path=path)
    _refuse_odd_images(images, path)
    _labels.refuse_odd(numbers, count=len(images), classes=CLASSES, path=path)
    return images, numbers


def _refuse_odd_images(images: np.ndarray, path: Path) -> None:
    grey, colour = images.ndim == 3, images.ndim == 4 and images.shape[-1] == 3
    if images.dtype != np.uint8 or not (grey or colour) or not math.prod(images.shape[1:]):
        raise InputError(
            f"{path} holds {images.dtype} of shape {list(images.shape)}; wanted are images of uint8, [N, height, "
            "width] or [N, height, width, 3], so get it again."
        )
