"""Arrays that are kept by the content of what they were computed from, and believed only as they were written."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from privkit import tensors
from privkit.errors import InputError

_SEAL = "key"


def sealed(key: str, named: Mapping[str, np.ndarray]) -> str:
    """Return the sha256, in hexadecimal, of a key and of the names, types, shapes and bytes of some arrays."""
    found = hashlib.sha256(key.encode())
    for name in sorted(named):
        array = named[name]
        found.update(f"{name}\0{array.dtype.str}{array.shape}\0".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def write(path: Path, key: str, named: Mapping[str, np.ndarray]) -> None:
    """Keep some arrays, none of which is called ``key``, under a key that says what they were computed from."""
    seal = np.frombuffer(sealed(key, named).encode(), dtype=np.uint8)
    tensors.write(path, {**named, _SEAL: seal}, durable=False)


def read(path: Path, key: str) -> dict[str, np.ndarray] | None:
    """Return the arrays that were kept under a key; nothing where none were, or the file was damaged or changed."""
    try:
        named = tensors.read(path, _SEAL)
    except InputError:
        return None
    seal = named.pop(_SEAL)
    return named if seal.tobytes() == sealed(key, named).encode() else None
