"""Packed files, unpacked up to a size that is known before: a small file may hold more than any memory."""

import bz2
import gzip
import io
import zlib
from io import BufferedIOBase
from pathlib import Path

from privkit.errors import InputError

PIECE = 2**20


def opened(path: Path) -> BufferedIOBase:
    """Return a file, open for reading; what its name says is packed (``.gz``, ``.bz2``) is unpacked as it is read."""
    if path.suffix == ".gz":
        return gzip.GzipFile(path)
    return bz2.BZ2File(path) if path.suffix == ".bz2" else path.open("rb")


def read(path: Path, *, largest: int) -> bytes:
    """Return a file's bytes, unpacked.

    Raises:
        InputError: it cannot be read or unpacked, or has more bytes than ``largest``.
    """
    try:
        with opened(path) as file:
            content = at_most(file, largest + 1)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}); get it again.") from None
    if len(content) > largest:
        raise InputError(f"{path} has more than {largest:,} bytes, unpacked; get the published file.")
    return content


def at_most(file: BufferedIOBase, size: int) -> bytes:
    """Return the next bytes of a file, at most so many; memory is taken only for those that are there."""
    kept = io.BytesIO()
    while kept.tell() < size and (piece := file.read(min(PIECE, size - kept.tell()))):
        kept.write(piece)
    return kept.getvalue()
