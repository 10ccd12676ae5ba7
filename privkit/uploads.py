"""uploads/: what the clients sent, one file per round, each message checked against its line of the ledger.

Of a round that is not kept the ledger has the digest and the size of every message, and there is no file.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accountant import events
from privkit import tensors
from privkit.errors import InputError
from privkit.release import PAYLOADS, NotKept, Payload, Release


def to_entry(release: Release, *, kept: bool = True) -> dict[str, Any]:
    """Return the entry of the ledger for one release: its place, its event and the digest of its payload."""
    payload = {"kind": release.payload.kind, "sha256": release.payload.digest()}
    return {
        "round": release.round,
        "client": release.client,
        "payload": payload if kept else payload | {"bytes": release.payload.nbytes},
        "event": events.to_dict(release.event),
    }


def write(folder: Path, round: int, releases: Sequence[Release]) -> None:
    """Replace the file of one round of a run."""
    named = {
        f"{r.client:06d}/{r.payload.kind}/{name}": array
        for r in releases
        for name, array in r.payload.tensors().items()
    }
    tensors.write(_path(folder, round), named)


def read(folder: Path, entries: Sequence[Mapping[str, Any]], *, rounds: int) -> Iterator[Release]:
    """Return the release of each entry of a run's ledger; one that is missing or was changed is refused."""
    left = {entry["round"] for entry in entries if "bytes" in entry["payload"]}
    by_round = {t: tensors.read(_path(folder, t)) for t in range(rounds) if t not in left}
    return (_release(folder, entry, by_round.get(entry["round"], {})) for entry in entries)


def _path(folder: Path, round: int) -> Path:
    return folder / "uploads" / f"round-{round:06d}.safetensors"


def _release(folder: Path, entry: Mapping[str, Any], upload: Mapping[str, np.ndarray]) -> Release:
    """Return one release, its payload checked against the digest in the ledger."""
    return Release(
        round=entry["round"],
        client=entry["client"],
        payload=_payload(folder, entry, upload),
        event=events.from_dict(entry["event"]),
    )


def _payload(folder: Path, entry: Mapping[str, Any], upload: Mapping[str, np.ndarray]) -> Payload:
    noted = entry["payload"]
    if "bytes" in noted:
        return NotKept(of=noted["kind"], sha256=noted["sha256"], size=noted["bytes"])
    prefix = f"{entry['client']:06d}/{entry['payload']['kind']}/"
    named = {key.removeprefix(prefix): a for key, a in upload.items() if key.startswith(prefix)}
    where = f"{folder}: the upload of client {entry['client']} in round {entry['round']}"
    if not named:
        raise InputError(f"{where} is missing; restore uploads/ or train again.")
    try:
        payload = PAYLOADS[entry["payload"]["kind"]].from_tensors(named)
    except (KeyError, ValueError):
        payload = None
    if payload is None or payload.digest() != entry["payload"]["sha256"]:
        raise InputError(f"{where} does not match its ledger line; it was damaged or changed.")
    return payload
