"""Named arrays in one safetensors file: safe to open, written whole or not at all."""

from pathlib import Path

import numpy as np

from privkit import atomic
from privkit.errors import InputError


def write(path: Path, named: dict[str, np.ndarray], *, durable: bool = True) -> None:
    """Replace a file by these arrays; the same arrays give the same bytes."""
    from safetensors.numpy import save

    # ascontiguousarray would give an array without axes one axis
    ordered = {name: np.asarray(named[name], order="C") for name in sorted(named)}
    atomic.write_bytes(path, save(ordered), durable=durable)


def read(path: Path, *wanted: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file; a missing, cut or damaged file, or one that lacks a wanted name, is refused."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.is_file():
        raise InputError(f"{path} does not exist; restore it or train again.")
    try:
        named = load_file(path)
    except SafetensorError as error:
        raise InputError(f"{path} is damaged or cut short ({error}); restore it or train again.") from None
    for name in wanted:
        if name not in named:
            raise InputError(f"{path} holds no {name}; restore it or train again.")
    return named
