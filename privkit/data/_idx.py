"""The idx format of MNIST and its kin: a magic number, big-endian lengths, then bytes."""

import hashlib
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.data import _labels, _unpacked
from privkit.errors import InputError

BYTES = 0x08
"""Third byte of the magic number where the values are unsigned bytes; the fourth is the number of dimensions."""

LARGEST = 2**30
"""Values of a file; the largest of the kin, EMNIST, has 547 million."""

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
"""Usual names of the images and labels of each part, without ``.gz``."""


def located(folder: Path) -> dict[str, tuple[Path, Path]] | None:
    """Return the images and labels of each part in a folder, packed or not; nothing if one is not there."""
    found = {}
    for part, names in FILES.items():
        paths = [path for name in names if (path := _either(folder / name)) is not None]
        if len(paths) < len(names):
            return None
        found[part] = (paths[0], paths[1])
    return found


def _either(path: Path) -> Path | None:
    """Return a file or, if it is not there, its packed form."""
    packed = path.with_name(f"{path.name}.gz")
    return next((found for found in (path, packed) if found.is_file()), None)


def read(path: Path, *, dimensions: int, sha256: str | None = None) -> UInt8[np.ndarray, "..."]:
    """Return the array of an idx file of unsigned bytes, unpacked if its name ends in ``.gz``.

    Args:
        path: the file.
        dimensions: how many the array must have.
        sha256: what the unpacked bytes must hash to, in hexadecimal; ``None`` takes any.

    Raises:
        InputError: the file cannot be read or unpacked, its magic number is another, it has fewer or more bytes than
            its lengths say, these make no array of 1 byte to 1 GiB, or its bytes are others.
    """
    head = 4 * (1 + dimensions)
    try:
        with _unpacked.opened(path) as file:
            start = file.read(head)
            shape = _shape(start, dimensions, path)
            wanted = math.prod(shape)
            rest = _unpacked.at_most(file, wanted + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
    if len(rest) != wanted:
        held = f"more than {wanted:,}" if len(rest) > wanted else f"{len(rest):,}"
        raise InputError(
            f"{path} holds {held} values, but says {_times(shape)}; it is damaged, get it again."
        )
    _refuse_other(start + rest, sha256, path)
    return np.frombuffer(rest, np.uint8).reshape(shape)


def _shape(start: bytes, dimensions: int, path: Path) -> tuple[int, ...]:
    """Return the lengths that a file's first bytes give."""
    magic = BYTES << 8 | dimensions
    if len(start) < 4 * (1 + dimensions) or struct.unpack(">I", start[:4])[0] != magic:
        raise InputError(
            f"{path} begins with {start[:4].hex()}, not with {magic:08x}; it is no idx file of "
            f"{dimensions}-dimensional bytes, get it again."
        )
    shape = struct.unpack(f">{dimensions}I", start[4:])
    if not 1 <= math.prod(shape) <= LARGEST:
        raise InputError(f"{path} says {_times(shape)} values, not 1 to {LARGEST:,}; get it again.")
    return shape


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _refuse_other(content: bytes, sha256: str | None, path: Path) -> None:
    found = hashlib.sha256(content).hexdigest() if sha256 else None
    if found != sha256:
        raise InputError(
            f"{path} is not the published file (unpacked, its sha256 is {found}, wanted is {sha256}); get that one, "
            "or set only_published: false."
        )


def pair(
    images: Path, labels: Path, *, classes: int, sha256: tuple[str, str] | None = None
) -> tuple[UInt8[np.ndarray, "N height width"], Int64[np.ndarray, " N"]]:
    """Return the images of one file and their classes, which another holds.

    Args:
        images: one file.
        labels: the other.
        classes: labels are less.
        sha256: what the two files must hash to, unpacked; ``None`` takes any.

    Raises:
        InputError: a file is damaged or another, the two have different lengths, or a label is no class.
    """
    one, other = sha256 or (None, None)
    pixels = read(images, dimensions=3, sha256=one)
    numbers = read(labels, dimensions=1, sha256=other).astype(np.int64)
    _labels.refuse_odd(numbers, count=len(pixels), classes=classes, path=labels)
    return pixels, numbers
