"""Weights in a package of their own: found without importing it, used only if they are the published ones."""

import hashlib
from importlib.util import find_spec
from pathlib import Path

from privkit.errors import InputError


def folder(package: str, *, install: str) -> Path:
    """Return the folder of an installed package.

    Args:
        package: the name it is imported by.
        install: the command that installs it.

    Raises:
        InputError: it is not installed.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"the package {package} is not installed; run {install}.")
    return Path(spec.submodule_search_locations[0])


def verified(path: Path, *, sha256: str, install: str) -> Path:
    """Return a file of a package if its bytes are the published ones.

    Raises:
        InputError: it is missing, or its bytes hash to something else.
    """
    if not path.is_file():
        raise InputError(f"{path} is missing; run {install} again.")
    found = digest(path)
    if found != sha256:
        raise InputError(f"{path} has sha256 {found[:12]}…, wanted {sha256[:12]}…; run {install} again.")
    return path


def digest(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
