"""The public files of the digit data sets: idx, libsvm text, MATLAB, and FedBN's pickles."""

import bz2
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.data import _idx, _pickle
from privkit.errors import InputError

CLASSES = 10
USPS_SIDE = 16

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
        InputError: the file is damaged or a line is not as above.
    """
    try:
        lines = bz2.decompress(path.read_bytes()).decode("ascii").splitlines()
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
    values = np.zeros((len(lines), USPS_SIDE * USPS_SIDE), np.float32)
    labels = np.empty(len(lines), np.int64)
    for row, line in enumerate(lines):
        label, *features = line.split()
        try:
            labels[row] = int(label) - 1
            for feature in features:
                index, _, value = feature.partition(":")
                values[row, _place(int(index))] = _unit(float(value))
        except ValueError as error:
            raise InputError(f"{path}, line {row + 1}: {error}; get it again.") from None
    _idx.refuse_odd_labels(labels, count=len(lines), classes=CLASSES, path=path)
    grey = ((values + 1) / 2 * 255).astype(np.uint8)
    return grey.reshape(-1, USPS_SIDE, USPS_SIDE), labels


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
        InputError: the file is damaged or holds something else.
    """
    from scipy.io import loadmat

    try:
        found = loadmat(path, variable_names=("X", "y"))
        images, labels = np.moveaxis(found["X"], -1, 0), found["y"].ravel().astype(np.int64)
    except Exception as error:  # scipy's errors on damaged files share no base class
        raise InputError(f"{path} holds no X and y of SVHN ({error}); get it again.") from None
    _refuse_odd_images(images, path)
    digits = np.where(labels == CLASSES, 0, np.where(labels == 0, -1, labels))
    _idx.refuse_odd_labels(digits, count=len(images), classes=CLASSES, path=path)
    return images, digits


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
    try:
        images, labels = (np.asarray(part) for part in _pickle.read(path))
        numbers = labels.reshape(len(images)).astype(np.int64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path} is not a pair of images and labels ({error}); get it again.") from None
    _refuse_odd_images(images, path)
    _idx.refuse_odd_labels(numbers, count=len(images), classes=CLASSES, path=path)
    return images, numbers


def _refuse_odd_images(images: np.ndarray, path: Path) -> None:
    grey, colour = images.ndim == 3, images.ndim == 4 and images.shape[-1] == 3
    if images.dtype != np.uint8 or not (grey or colour):
        raise InputError(
            f"{path} holds {images.dtype} of shape {list(images.shape)}; wanted are images of uint8, [N, height, "
            "width] or [N, height, width, 3], so get it again."
        )
