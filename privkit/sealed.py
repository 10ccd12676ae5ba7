"""Files that belong to one run and no other: run.json holds the digest of each."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from privkit import tensors
from privkit.errors import InputError
from privkit.manifest import Manifest


def write(folder: Path, manifest: Manifest, name: str, named: dict[str, np.ndarray]) -> Manifest:
    """Replace a file by these arrays; return the manifest that notes its digest, which is not written yet."""
    tensors.write(folder / name, named)
    return replace(manifest, files={**manifest.files, name: _sha256(folder / name)})


def read(folder: Path, manifest: Manifest, name: str, *wanted: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file; another run's, a changed one, or one that lacks a wanted name is refused."""
    named = tensors.read(folder / name, *wanted)
    if manifest.files.get(name) != _sha256(folder / name):
        raise InputError(
            f"{folder / name} is not the file that this run wrote: it was changed, or is another run's; "
            "restore it or train again."
        )
    return named


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
