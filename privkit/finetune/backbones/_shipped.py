"""The model that comes in a package of its own."""

from functools import cache
from pathlib import Path

from privkit.models import _package, minilm


@cache
def folder() -> Path:
    """Return the folder of MiniLM's files, each of them checked, once per process.

    Raises:
        InputError: the package is not installed, or a file is damaged.
    """
    found = _package.folder(minilm.PACKAGE, install=minilm.INSTALL) / "model"
    for name, sha256 in minilm.FILES.items():
        _package.verified(found / name, sha256=sha256, install=minilm.INSTALL)
    return found
