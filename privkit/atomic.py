"""Writes that a kill cannot tear: a temporary name, fsync, rename, fsync of the folder."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privkit.errors import InputError


def write_bytes(path: Path, data: bytes) -> None:
    """Replace a file by these bytes, whole or not at all."""
    write_with(path, lambda tmp: tmp.write_bytes(data))


def write_with(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a temporary file beside ``path``, then rename it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    tmp = path.with_name(f".{path.name}.tmp")
    write(tmp)
    with tmp.open("rb") as handle:
        os.fsync(handle.fileno())
    tmp.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def canonical_json(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def write_json(path: Path, value: Any) -> None:
    """Replace a file by a value as indented JSON with sorted keys; NaN and infinity are refused."""
    text = json.dumps(value, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False)
    write_bytes(path, f"{text}\n".encode())


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; an unreadable one is refused by name."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path} is not valid JSON ({error}); it was damaged or edited.") from None
