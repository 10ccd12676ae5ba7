"""Named arrays in one safetensors file: safe to open, memory-mapped, written whole or not at all."""

from pathlib import Path

import numpy as np

from privkit import atomic
from privkit.errors import InputError


def write(path: Path, named: dict[str, np.ndarray]) -> None:
    """Replace a file by these arrays; the same arrays give the same bytes."""
    from safetensors.numpy import save

    ordered = {name: np.ascontiguousarray(named[name]) for name in sorted(named)}
    atomic.write_bytes(path, save(ordered))


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file; a missing, cut or damaged file is refused by name."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if not path.exists():
        raise InputError(f"{path} does not exist; restore it or train again.")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise InputError(f"{path} is damaged or cut short ({error}); restore it or train again.") from None
