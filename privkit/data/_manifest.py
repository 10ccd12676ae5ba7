"""Which files a data set was read from: the size and sha256 of each, kept in a text file and compared later."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from privkit import atomic
from privkit.errors import InputError

NAMED = 3
_LINE = re.compile(r"([0-9a-f]{64})  ([0-9]{1,18})  (.+)")


@dataclass(frozen=True)
class Entry:
    """One file: its sha256 in hexadecimal, and its size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Manifest:
    """Files by their path below the data set's folder, with ``/``."""

    files: dict[str, Entry]

    @property
    def text(self) -> str:
        """Return one line per file, sorted by path: sha256, size, path, two spaces between."""
        return "".join(f"{e.sha256}  {e.size}  {name}\n" for name, e in sorted(self.files.items()))

    @property
    def digest(self) -> str:
        """Return the sha256 of the text, in hexadecimal: one number for the whole data set."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Replace a file by the text, whole or not at all."""
        atomic.write_bytes(path, self.text.encode())

    def refuse_other(self, found: "Manifest", *, kept: Path) -> None:
        """Refuse files that are not, name by name and byte by byte, those of this manifest.

        Args:
            found: what was read now.
            kept: the file that this manifest was read from.

        Raises:
            InputError: files differ, are missing or are extra; the first three of each kind are named.
        """
        ours, theirs = self.files, found.files
        kinds = {
            "differ": sorted(name for name in ours if name in theirs and ours[name] != theirs[name]),
            "are missing": sorted(ours.keys() - theirs.keys()),
            "are extra": sorted(theirs.keys() - ours.keys()),
        }
        said = [f"{len(names):,} {kind} ({_named(names)})" for kind, names in kinds.items() if names]
        if said:
            raise InputError(
                f"files are not those of manifest={str(kept)!r}: {', '.join(said)}; restore them, or write the "
                "manifest anew."
            )


def of(files: dict[str, Path]) -> Manifest:
    """Return the manifest of files as they are now; each is read once, in pieces.

    Raises:
        InputError: a file cannot be read, or its name cannot be a line of text.
    """
    for name in files:
        if "\n" in name or "\r" in name or _unwritable(name):
            raise InputError(f"file name {name!r} cannot be a line of a manifest; rename the file.")
    return Manifest({name: _entry(path) for name, path in files.items()})


def read(path: Path) -> Manifest:
    """Return a manifest that was written before.

    Raises:
        InputError: the file is not there, or is no manifest.
    """
    try:
        lines = path.read_bytes().decode().removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"manifest={str(path)!r} cannot be read ({error}); write it with write_manifest(path) of the data set."
        ) from None
    files = {}
    for number, line in enumerate(lines, start=1):
        found = _LINE.fullmatch(line.removesuffix("\r"))
        if found is None:
            raise InputError(
                f"{path}, line {number}: {line[:200]!r} is not sha256, size and path; write it anew."
            )
        if found[3] in files:
            raise InputError(f"{path}, line {number}: {found[3]!r} is listed twice; write it anew.")
        files[found[3]] = Entry(found[1], int(found[2]))
    return Manifest(files)


def _unwritable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    return False


def _entry(path: Path) -> Entry:
    if path.exists() and not path.is_file():  # reading a pipe would never end
        raise InputError(f"{path} is no ordinary file; move it away.")
    try:
        with path.open("rb") as file:
            return Entry(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error}); restore it.") from None


def _named(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
