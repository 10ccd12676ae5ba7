"""Writes that a kill cannot tear: a temporary name, then a rename; with fsync, a power cut cannot either."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from privkit.errors import InputError


def write_bytes(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file by these bytes, whole or not at all."""
    write_with(path, lambda tmp: tmp.write_bytes(data), durable=durable)


def write_with(path: Path, write: Callable[[Path], Any], *, durable: bool = True) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then rename it into place.

    Args:
        path: file to replace.
        write: called with the temporary path.
        durable: whether to wait until the disk has it; without that a power cut may lose or empty the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(f".{path.name}.tmp")
    write(tmp)
    if durable:
        with tmp.open("r+b") as handle:
            os.fsync(handle.fileno())
    tmp.replace(path)
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    if os.name == "nt":  # there is no handle to a folder
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN; numpy's numbers are numbers."""
    return _json(value, separators=(",", ":"))


def write_json(path: Path, value: Any, *, durable: bool = True) -> None:
    """Replace a file by a value as indented JSON with sorted keys; NaN and infinity are refused."""
    write_bytes(path, f"{_json(value, indent=2)}\n".encode(), durable=durable)


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; an unreadable one is refused by name."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is not valid JSON ({error}); it was damaged or edited.") from None


def _json(value: Any, **layout: Any) -> str:
    try:
        return json.dumps(
            value, sort_keys=True, allow_nan=False, ensure_ascii=False, default=_plain, **layout
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a value cannot be written as JSON ({error}); give finite numbers, text, lists and dicts."
        ) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} is {type(value).__name__}")
