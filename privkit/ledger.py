"""The ledger: one hash-chained line per release, appended and fsynced, never rewritten.

Each line holds the hash of the line before it, so a changed byte breaks the chain from there on. The
head is anchored outside the file (in run.json), so a cut tail is detected as well. No clock is hashed:
the same run gives the same bytes.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from privkit.atomic import canonical_json, sync_folder, write_bytes
from privkit.errors import InputError
from privkit.whole import whole

START = hashlib.sha256(b"privkit ledger 1").hexdigest()


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """Where a ledger ends: number of lines, number of bytes, hash of the last line."""

    lines: int = 0
    bytes: int = 0
    head: str = START

    def to_dict(self) -> dict[str, Any]:
        """Return the anchor as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Anchor":
        """Read what :meth:`to_dict` returned."""
        lines, size = whole("lines", plain["lines"], least=0), whole("bytes", plain["bytes"], least=0)
        return cls(lines=lines, bytes=size, head=plain["head"])


def _hash(entry: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(entry).encode()).hexdigest()


def chain(entries: Iterable[dict[str, Any]], anchor: Anchor) -> tuple[bytes, Anchor]:
    """Return the lines for some entries after an anchor, and the anchor after them."""
    lines = []
    head = anchor.head
    for entry in entries:
        linked = {**entry, "previous": head}
        head = _hash(linked)
        lines.append(canonical_json({**linked, "hash": head}).encode() + b"\n")
    data = b"".join(lines)
    return data, Anchor(lines=anchor.lines + len(lines), bytes=anchor.bytes + len(data), head=head)


def append(path: Path, entries: Iterable[dict[str, Any]], anchor: Anchor) -> Anchor:
    """Append entries after the anchored end and fsync; what lies beyond the anchor is dropped first.

    A tail beyond the anchor was written by a process that died before it could anchor it.
    """
    data, after = chain(entries, anchor)
    new = not path.exists()
    found = 0 if new else path.stat().st_size
    if found < anchor.bytes:
        raise InputError(
            f"{path} was cut: it holds {found} bytes where run.json anchors {anchor.bytes}; "
            "restore it or train again."
        )
    with path.open("w+b" if new else "r+b") as handle:
        handle.truncate(anchor.bytes)
        handle.seek(anchor.bytes)
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    if new:
        sync_folder(path.parent)
    return after


def read(path: Path, anchor: Anchor) -> list[dict[str, Any]]:
    """Return the anchored entries, each without its links; any change or cut is refused with its line."""
    if not path.exists():
        raise InputError(f"{path} is missing, but run.json anchors {anchor.lines} lines; restore it.")
    data = path.read_bytes()[: anchor.bytes]
    *lines, rest = data.split(b"\n")
    if rest or len(data) < anchor.bytes or len(lines) != anchor.lines:
        raise InputError(
            f"{path} was cut: it holds {len(lines)} whole lines where run.json anchors {anchor.lines}; "
            "restore it or train again."
        )
    entries, head = [], START
    for number, line in enumerate(lines, start=1):
        entry, head = _checked(path, number, line, head)
        entries.append(entry)
    if head != anchor.head:
        raise InputError(f"{path} does not end where run.json says; one of the two was changed.")
    return entries


def merge(target: Path, sources: Mapping[Path, Anchor]) -> Anchor:
    """Write the ledgers of several sites as one chain, in (round, client) order, and return where it ends.

    Args:
        target: file to write; it must not be there yet.
        sources: each site's ledger and where it ends; clients have one number each, over all sites.

    Raises:
        InputError: a source was changed or cut, two sites hold different lines of one client and round, or the target
            exists; nothing is written then.
    """
    if target.exists():
        raise InputError(f"{target} exists; merge into a new file.")
    found: dict[tuple[int, int], tuple[Path, dict[str, Any]]] = {}
    for path, anchor in sources.items():
        for entry in read(path, anchor):
            key = place(path, entry)
            before, known = found.setdefault(key, (path, entry))
            if known != entry:
                raise InputError(
                    f"{before} and {path} hold different lines of client {key[1]} in round {key[0]}; number the "
                    "clients of all sites apart, or merge each ledger once."
                )
    data, anchor = chain((found[key][1] for key in sorted(found)), Anchor())
    write_bytes(target, data)
    read(target, anchor)
    return anchor


def place(path: Path, entry: dict[str, Any]) -> tuple[int, int]:
    """Return the round and client of an entry; one without them is refused."""
    try:
        return whole("round", entry["round"], least=0), whole("client", entry["client"], least=0)
    except (KeyError, InputError) as error:
        raise InputError(
            f"{path} holds a line without a round and a client ({error}); it is no ledger of a run."
        ) from None


def _checked(path: Path, number: int, line: bytes, previous: str) -> tuple[dict[str, Any], str]:
    """Return one line's entry and hash, if both its links hold."""
    try:
        entry = json.loads(line)
        written = canonical_json(entry).encode() == line  # JSON reads 1E-5 and 1e-5 as the same
        head = entry.pop("hash")
        if written and entry.pop("previous") == previous and _hash({**entry, "previous": previous}) == head:
            return entry, head
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise InputError(f"{path} was changed: line {number} does not match its hash; restore it or train again.")
