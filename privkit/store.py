"""A run directory: what was released, what it cost, and, apart from that, the auditor's truth.

::

    run.json          what was run, and how far it got: the ledger's anchor
    ledger.jsonl      one hash-chained line per release
    uploads/          one safetensors file per round
    candidates/       the records (and canaries) that attacks are asked about, and those an attacker owns
    truth/            which candidates were members, canary signs, prototypes before noise: scoring only
    state/            what training needs to go on after a kill
    metrics.parquet   accuracy per round and client

A round is committed in this order: uploads, truth, state, ledger, anchor. A process killed anywhere
leaves either the round before or the round itself; what lies beyond the anchor is written again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from accountant import events
from privkit import atomic, ledger, tensors
from privkit.errors import InputError
from privkit.release import PAYLOADS, Release
from privkit.transcript import Records, Transcript
from privkit.truth import Truth

SCHEMA = 1
_EMPTY = np.zeros(0, dtype=bool)


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What a run is: fixed when it is created, and compared when it is resumed.

    Attributes:
        cell: name of its configuration; runs that differ in nothing but the seed share it.
        seed: of every keyed draw; ``None`` when the noise was cryptographic.
        rounds: planned communication rounds.
        clients: one name per client.
        num_classes: real classes; canary classes come after them.
        dim: width of an embedding.
        promise: the (epsilon, delta) that was promised for the whole run, if any.
        config: the full configuration, as plain values.
        data: sha256 of what the run was computed from, by name.
        versions: of the software that made it; written down, not compared.
    """

    cell: str
    seed: int | None
    rounds: int
    clients: tuple[str, ...]
    num_classes: int
    dim: int
    promise: Mapping[str, float] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the information as plain values."""
        return {**vars(self), "clients": list(self.clients)}


class Run:
    """One run directory, open for reading, or for committing rounds."""

    def __init__(self, path: Path) -> None:
        """Open a run; one of another schema, or with a damaged run.json, is refused."""
        self.path = path
        self._document = _checked(path / "run.json")
        plain = dict(self._document["run"])
        self.info = RunInfo(**{**plain, "clients": tuple(plain["clients"])})
        self.anchor = ledger.Anchor.from_dict(self._document["progress"]["ledger"])

    @classmethod
    def create(cls, path: Path, info: RunInfo, *, batch: Sequence[str] = ()) -> "Run":
        """Return a new run, or the one already there if it was created from the same information."""
        if (path / "run.json").exists():
            run = cls(path)
            run.refuse_change(info)
            return run
        if path.exists() and any(not entry.name.startswith(".") for entry in path.iterdir()):
            raise InputError(f"{path} holds other files and no run.json; choose another folder.")
        document = {
            "schema": SCHEMA,
            "run": info.to_dict(),
            "batch": list(batch),
            "progress": {"rounds": 0, "ledger": ledger.Anchor().to_dict()},
        }
        atomic.write_json(path / "run.json", document)
        return cls(path)

    def refuse_change(self, info: RunInfo) -> None:
        """Raise if some information differs from what this run was created with, naming the difference."""
        for name in ("config", "data", "seed", "rounds", "clients", "num_classes", "dim", "promise"):
            before, now = getattr(self.info, name), getattr(info, name)
            difference = _difference(before, now, name)
            if difference:
                raise InputError(
                    f"{self.path} was created with another {difference}; "
                    "use a new --out folder, or the configuration it was created with."
                )

    @property
    def batch(self) -> list[str]:
        """Return the runs that are trained together with this one, by path below their common folder."""
        return list(self._document["batch"])

    @property
    def completed(self) -> int:
        """Return the number of committed rounds."""
        return self._document["progress"]["rounds"]

    @property
    def complete(self) -> bool:
        """Return whether every planned round is committed."""
        return self.completed >= self.info.rounds

    # ------------------------------------------------------------------ writing

    def write_questions(
        self, *, records: Records | None, reference: Records | None, canaries: Records | None
    ) -> None:
        """Write what attacks are asked about and what the attacker owns; none of it says who is a member."""
        for name, value in (("records", records), ("reference", reference), ("canaries", canaries)):
            if value is not None and len(value):
                tensors.write(self.path / "candidates" / f"{name}.safetensors", vars(value))

    def write_answers(self, *, members: np.ndarray = _EMPTY, canary_signs: np.ndarray = _EMPTY) -> None:
        """Write who is a member, and how the canaries were planted."""
        named = {"members": members.astype(np.uint8), "canary_signs": canary_signs.astype(np.uint8)}
        tensors.write(self.path / "truth" / "answers.safetensors", named)

    def commit(
        self,
        round: int,
        releases: Sequence[Release],
        *,
        clean: Mapping[int, np.ndarray] | None = None,
        state: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Commit one round: everything that left the clients, and what training needs to go on.

        A round that is committed already must come out the same; otherwise the difference is refused
        and nothing is written.
        """
        entries = [_entry(release) for release in releases]
        if round < self.completed:
            self._refuse_other_bytes(round, entries)
            return
        if round != self.completed:
            raise InputError(f"{self.path}: round {round} cannot follow {self.completed} committed rounds.")
        named = {
            f"{r.client:06d}/{r.payload.kind}/{name}": array
            for r in releases
            for name, array in r.payload.tensors().items()
        }
        tensors.write(self._upload(round), named)
        if clean:
            tensors.write(self._clean(round), {f"{m:06d}": array for m, array in clean.items()})
        if state is not None:
            tensors.write(self._state(round + 1), dict(state))
        anchor = ledger.append(self.path / "ledger.jsonl", entries, self.anchor)
        self._anchor(round + 1, anchor)
        self._state(round - 1).unlink(missing_ok=True)

    def _anchor(self, rounds: int, anchor: ledger.Anchor) -> None:
        progress = {"rounds": rounds, "ledger": anchor.to_dict()}
        self._document = {**self._document, "progress": progress}
        atomic.write_json(self.path / "run.json", self._document)
        self.anchor = anchor

    def _refuse_other_bytes(self, round: int, entries: Sequence[dict[str, Any]]) -> None:
        before = [e for e in self.entries() if e["round"] == round]
        if before != list(entries):
            raise InputError(
                f"{self.path}: round {round} came out differently from what is committed; was it begun on "
                "another machine or with other versions? Train again into a new folder."
            )

    # ------------------------------------------------------------------ reading

    def entries(self) -> list[dict[str, Any]]:
        """Return the ledger's entries, after checking the whole chain."""
        return ledger.read(self.path / "ledger.jsonl", self.anchor) if self.anchor.lines else []

    def transcript(self) -> Transcript:
        """Return everything that was released, after checking ledger and uploads against each other."""
        entries = self.entries()
        uploads = {t: tensors.read(self._upload(t)) for t in range(self.completed)}
        return Transcript.of(_release(self.path, entry, uploads[entry["round"]]) for entry in entries)

    def state(self, round: int) -> dict[str, np.ndarray]:
        """Return what training saved after this many rounds."""
        return tensors.read(self._state(round))

    def records(self, name: str) -> Records | None:
        """Return ``records``, ``reference`` or ``canaries``, or ``None`` if the run has none."""
        path = self.path / "candidates" / f"{name}.safetensors"
        return Records(**tensors.read(path)) if path.exists() else None

    def truth(self) -> Truth:
        """Return the answers; without them an attack has scores, but nothing to be judged by."""
        path = self.path / "truth" / "answers.safetensors"
        if not path.exists():
            raise InputError(
                f"{path} is missing: attacks cannot be judged without it; restore truth/ or train again."
            )
        named = tensors.read(path)
        clean = {
            (int(file.stem.removeprefix("round-")), int(client)): array
            for file in sorted((self.path / "truth").glob("round-*.safetensors"))
            for client, array in tensors.read(file).items()
        }
        return Truth(
            members=named["members"].astype(bool),
            canary_signs=named["canary_signs"].astype(bool),
            clean=clean,
        )

    def _upload(self, round: int) -> Path:
        return self.path / "uploads" / f"round-{round:06d}.safetensors"

    def _clean(self, round: int) -> Path:
        return self.path / "truth" / f"round-{round:06d}.safetensors"

    def _state(self, round: int) -> Path:
        return self.path / "state" / f"round-{round:06d}.safetensors"


def find(root: Path) -> list[Run]:
    """Return the runs in a folder: itself, or those below it, in the order of their paths."""
    if not root.exists():
        raise InputError(f"{root} does not exist; give a folder that `privkit train` or a Recorder wrote.")
    paths = sorted(root.rglob("run.json"))
    if not paths:
        raise InputError(
            f"{root} holds no run (no run.json); give a folder that `privkit train` or a Recorder wrote."
        )
    return [Run(path.parent) for path in paths]


def _checked(path: Path) -> dict[str, Any]:
    document = atomic.read_json(path)
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{path} has schema {schema!r}, this privkit reads {SCHEMA}; use the version that wrote it."
        )
    if not {"run", "batch", "progress"} <= set(document):
        raise InputError(f"{path} is incomplete; it was damaged or edited.")
    return document


def _entry(release: Release) -> dict[str, Any]:
    return {
        "round": release.round,
        "client": release.client,
        "payload": {"kind": release.payload.kind, "sha256": release.payload.digest()},
        "event": events.to_dict(release.event),
    }


def _release(path: Path, entry: dict[str, Any], upload: Mapping[str, np.ndarray]) -> Release:
    """Return one release, its payload checked against the digest in the ledger."""
    prefix = f"{entry['client']:06d}/{entry['payload']['kind']}/"
    named = {key.removeprefix(prefix): a for key, a in upload.items() if key.startswith(prefix)}
    where = f"{path}: the upload of client {entry['client']} in round {entry['round']}"
    if not named:
        raise InputError(f"{where} is missing; restore uploads/ or train again.")
    payload = PAYLOADS[entry["payload"]["kind"]].from_tensors(named)
    if payload.digest() != entry["payload"]["sha256"]:
        raise InputError(f"{where} does not match its ledger line; it was damaged or changed.")
    return Release(
        round=entry["round"],
        client=entry["client"],
        payload=payload,
        event=events.from_dict(entry["event"]),
    )


def _difference(before: Any, now: Any, name: str) -> str:
    """Return the first difference of two plain values in words, or nothing."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}, key=str):
            found = _difference(before.get(key), now.get(key), f"{name}.{key}")
            if found:
                return found
        return ""
    before, now = (list(v) if isinstance(v, tuple) else v for v in (before, now))
    return "" if before == now else f"{name}: {before!r} there, {now!r} now"
