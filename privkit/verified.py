"""What a run's ledger says, held against its run.json: its releases, and why it ended before all planned rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accountant import events
from privkit import ledger
from privkit.errors import InputError
from privkit.manifest import Manifest
from privkit.stop import Stop


def entries(folder: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """Return the ledger's entry of each release, after checking the whole chain and the place of each."""
    path = folder / "ledger.jsonl"
    found = [line for line in _lines(path, manifest) if "stop" not in line]
    _refuse_foreign(path, manifest, found)
    return found


def stop(folder: Path, manifest: Manifest) -> Stop | None:
    """Return why the run ended before all planned rounds, or ``None``; a reason that it contradicts is refused."""
    if not manifest.ended:
        return None
    try:
        why = Stop.from_entry(_lines(folder / "ledger.jsonl", manifest)[-1])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{folder}: run.json says that the run ended, and the ledger's last line does not say why "
            f"({error}); restore it or train again."
        ) from None
    wrong = why.refuted_by(
        budget=manifest.budget,
        clients=len(manifest.info.clients),
        rounds=manifest.rounds,
        released=[(e["round"], e["client"], events.from_dict(e["event"])) for e in entries(folder, manifest)],
    )
    if wrong:
        raise InputError(
            f"{folder}: the ledger's last line says that the budget was spent, but {wrong}; one of the two was "
            "changed."
        )
    return why


def _lines(path: Path, manifest: Manifest) -> list[dict[str, Any]]:
    """Return every anchored line; only the last one may end the run, and only if run.json says so too."""
    if manifest.complete and path.exists() and path.stat().st_size > manifest.anchor.bytes:
        raise InputError(f"{path} holds more than run.json anchors; one of the two was changed.")
    lines = ledger.read(path, manifest.anchor) if manifest.anchor.lines else []
    for number, line in enumerate(lines, start=1):
        if "stop" in line and not (manifest.ended and number == len(lines)):
            what = "other lines follow" if number < len(lines) else "run.json says that it goes on"
            raise InputError(f"{path}: line {number} ends the run, but {what}; one of the two was changed.")
    return lines


def _refuse_foreign(path: Path, manifest: Manifest, releases: Sequence[dict[str, Any]]) -> None:
    """Raise if a release is of no client or round of this run, or there twice."""
    clients, seen = len(manifest.info.clients), set()
    for entry in releases:
        round, client = ledger.place(path, entry)
        if round >= manifest.rounds or client >= clients or (round, client) in seen:
            raise InputError(
                f"{path} holds a release of client {client} in round {round} that has no place among one "
                f"release of {clients} clients in {manifest.rounds} rounds; it was changed."
            )
        seen.add((round, client))
