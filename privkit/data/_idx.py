"""The idx format of MNIST and its kin: a magic number, big-endian lengths, then bytes."""

import gzip
import hashlib
import struct
import zlib
from pathlib import Path

import numpy as np
from jaxtyping import Int64, UInt8

from privkit.errors import InputError

BYTES = 0x08
"""Third byte of the magic number where the values are unsigned bytes; the fourth is the number of dimensions."""

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


def unpacked(path: Path, *, sha256: str | None = None) -> bytes:
    """Return a file's bytes, unpacked if its name ends in ``.gz``.

    Args:
        path: the file.
        sha256: what the unpacked bytes must hash to, in hexadecimal; ``None`` takes any.

    Raises:
        InputError: it cannot be read or unpacked, or its bytes are others.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
    found = hashlib.sha256(content).hexdigest() if sha256 else None
    if found != sha256:
        raise InputError(
            f"{path} is not the published file (unpacked, its sha256 is {found}, wanted is {sha256}); get that one, "
            "or set only_published: false."
        )
    return content


def decoded(content: bytes, *, dimensions: int, path: Path) -> UInt8[np.ndarray, "..."]:
    """Return the array of an idx file of unsigned bytes.

    Args:
        content: the file, unpacked.
        dimensions: how many the array must have.
        path: for messages.

    Raises:
        InputError: the magic number is another, or there are fewer or more bytes than the lengths say.
    """
    head = 4 * (1 + dimensions)
    magic = BYTES << 8 | dimensions
    if len(content) < head or struct.unpack(">I", content[:4])[0] != magic:
        raise InputError(
            f"{path} begins with {content[:4].hex()}, not with {magic:08x}; it is no idx file of "
            f"{dimensions}-dimensional bytes, get it again."
        )
    shape = struct.unpack(f">{dimensions}I", content[4:head])
    wanted = int(np.prod(shape, dtype=np.int64))
    if len(content) - head != wanted:
        raise InputError(
            f"{path} holds {len(content) - head:,} values, but says {' x '.join(map(str, shape))}; it is damaged, "
            "get it again."
        )
    return np.frombuffer(content, np.uint8, offset=head).reshape(shape)


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
    pixels = decoded(unpacked(images, sha256=one), dimensions=3, path=images)
    numbers = decoded(unpacked(labels, sha256=other), dimensions=1, path=labels).astype(np.int64)
    refuse_odd_labels(numbers, count=len(pixels), classes=classes, path=labels)
    return pixels, numbers


def refuse_odd_labels(labels: Int64[np.ndarray, " N"], *, count: int, classes: int, path: Path) -> None:
    """Refuse labels that are not one per image, or not from 0 to ``classes`` - 1."""
    if len(labels) != count:
        raise InputError(f"{path} has {len(labels):,} labels for {count:,} images; get both again.")
    odd = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(odd):
        raise InputError(
            f"{path} has label {labels[odd[0]]} (record {odd[0]}); wanted are 0 to {classes - 1}, get it again."
        )
