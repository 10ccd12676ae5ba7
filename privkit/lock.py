"""One writing process per folder: a lock that the operating system drops when the process ends, however it ends."""

import os
import weakref
from pathlib import Path

from privkit.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: nothing is locked there
    fcntl = None

MOST = 128  # a sweep may open more runs than a process may open files; any two sweeps meet in the first ones


class Lock:
    """A folder's lock, held for as long as this object lives."""

    def __init__(self, handle: int) -> None:
        """Take over an open, locked file."""
        weakref.finalize(self, os.close, handle)


_held: "weakref.WeakValueDictionary[Path, Lock]" = weakref.WeakValueDictionary()


def hold(folder: Path) -> Lock | None:
    """Return the lock of a folder; refused while another process holds it.

    A process that holds it already gets it again. ``None`` where nothing can be locked: on Windows, on a
    file system without locks, and beyond the 128th lock of a process.
    """
    path = folder.resolve() / ".lock"
    if path in _held or fcntl is None or len(_held) >= MOST:
        return _held.get(path)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error}); choose another folder.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InputError(
            f"{folder} is being written by another process; wait for it, stop it, or choose another folder."
        ) from None
    except OSError:
        os.close(handle)
        return None
    lock = _held[path] = Lock(handle)
    return lock


def made(folder: Path) -> Lock | None:
    """Return the lock of a folder, which is made if it is missing; refused before anything is computed for it.

    Raises:
        InputError: it cannot be made or written, or another process holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error}); choose another folder.") from None
    return hold(folder)
