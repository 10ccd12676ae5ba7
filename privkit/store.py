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
A run whose budget is spent ends with one more line, which says why; then it is complete.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accountant import events
from accountant.budget import Budget
from privkit import ledger, lock, tensors
from privkit.errors import InputError
from privkit.manifest import Manifest
from privkit.manifest import RunInfo as RunInfo
from privkit.release import PAYLOADS, Release
from privkit.stop import Stop
from privkit.transcript import Records, Transcript
from privkit.truth import Hidden, Truth

_EMPTY = np.zeros(0, dtype=bool)


class Run:
    """One run directory, open for reading, or for committing rounds."""

    def __init__(self, path: Path, *, held: lock.Lock | None = None) -> None:
        """Open a run for reading; one of another schema, or with a damaged run.json, is refused."""
        self.path = path
        self._manifest = Manifest.read(path / "run.json")
        self._held = held

    @classmethod
    def create(cls, path: Path, info: RunInfo, *, batch: Sequence[str] = ()) -> "Run":
        """Return a new run, or the one already there if it was created from the same information.

        It is open for committing, by one process at a time: while another one has it open, it is refused.
        """
        _refuse_other_files(path)
        held = lock.hold(path)
        if not (path / "run.json").exists():
            Manifest(info=info, batch=tuple(batch)).write(path / "run.json")
        run = cls(path, held=held)
        run.refuse_change(info)
        return run

    def refuse_change(self, info: RunInfo) -> None:
        """Raise if some information differs from what this run was created with, naming the difference."""
        difference = self.info.difference(info)
        if difference:
            raise InputError(
                f"{self.path} was created with another {difference}; "
                "use a new --out folder, or the configuration it was created with."
            )

    @property
    def info(self) -> RunInfo:
        """Return what the run is."""
        return self._manifest.info

    @property
    def anchor(self) -> ledger.Anchor:
        """Return where the ledger ends."""
        return self._manifest.anchor

    @property
    def batch(self) -> list[str]:
        """Return the runs that are trained together with this one, by path below their common folder."""
        return list(self._manifest.batch)

    @property
    def completed(self) -> int:
        """Return the number of committed rounds."""
        return self._manifest.rounds

    @property
    def complete(self) -> bool:
        """Return whether every planned round is committed, or the run ended before."""
        return self.ended or self.completed >= self.info.rounds

    @property
    def ended(self) -> bool:
        """Return whether the run stopped for good before all planned rounds: :attr:`stopped` says why."""
        return self._manifest.ended

    @property
    def rounds(self) -> int:
        """Return how many rounds the run has when it is complete: the planned ones, or those it ended with."""
        return self.completed if self.ended else self.info.rounds

    @property
    def budget(self) -> Budget | None:
        """Return what each client may spend at most, if that is kept."""
        return None if self.info.budget is None else Budget.from_dict(self.info.budget)

    # ------------------------------------------------------------------ writing

    def write_questions(
        self, *, records: Records | None, reference: Records | None, canaries: Records | None
    ) -> None:
        """Write what attacks are asked about and what the attacker owns; none of it says who is a member."""
        for name, value in (("records", records), ("reference", reference), ("canaries", canaries)):
            if value is not None and len(value):
                self._write_bound(f"candidates/{name}.safetensors", vars(value))

    def write_answers(self, *, members: np.ndarray = _EMPTY, canary_signs: np.ndarray = _EMPTY) -> None:
        """Write who is a member, and how the canaries were planted."""
        named = {"members": members.astype(np.uint8), "canary_signs": canary_signs.astype(np.uint8)}
        self._write_bound("truth/answers.safetensors", named)

    def _write_bound(self, name: str, named: dict[str, np.ndarray]) -> None:
        """Write a file that belongs to this run and no other; the next commit notes its digest in run.json."""
        tensors.write(self.path / name, named)
        files = {**self._manifest.files, name: _sha256(self.path / name)}
        self._manifest = replace(self._manifest, files=files)

    def close(self) -> None:
        """Let other processes write to the folder; what was committed is there."""
        self._held = None

    def bind(self) -> None:
        """Note in run.json which questions and answers belong to this run, without waiting for a commit."""
        self._manifest.write(self.path / "run.json")

    def _read_bound(self, name: str, *wanted: str) -> dict[str, np.ndarray]:
        """Return the arrays of a file that belongs to this run; another run's, or a changed one, is refused."""
        named = tensors.read(self.path / name, *wanted)
        if self._manifest.files.get(name) != _sha256(self.path / name):
            raise InputError(
                f"{self.path / name} is not the file that this run wrote: it was changed, or is another run's; "
                "restore it or train again."
            )
        return named

    def commit(
        self,
        round: int,
        releases: Sequence[Release],
        *,
        hidden: Mapping[int, Hidden] | None = None,
        state: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Commit one round: everything that left the clients, and what training needs to go on.

        A round that is committed already must come out the same; otherwise the difference is refused
        and nothing is written.
        """
        ordered = sorted(releases, key=lambda release: release.client)
        self._refuse_misplaced(round, ordered)
        entries = [_entry(release) for release in ordered]
        if round < self.completed:
            self._refuse_other_bytes(round, entries)
            return
        named = {
            f"{r.client:06d}/{r.payload.kind}/{name}": array
            for r in ordered
            for name, array in r.payload.tensors().items()
        }
        tensors.write(self._upload(round), named)
        if hidden:
            by_client = {
                f"{m:06d}/{name}": array
                for m, h in hidden.items()
                for name, array in h._asdict().items()
                if array is not None
            }
            tensors.write(self._hidden(round), by_client, durable=False)
        if state is not None:
            tensors.write(self._state(round + 1), dict(state), durable=False)
            self._forget_states(before=round)
        anchor = ledger.append(self.path / "ledger.jsonl", entries, self.anchor)
        manifest = replace(self._manifest, rounds=round + 1, anchor=anchor)
        manifest.write(self.path / "run.json")
        self._manifest = manifest

    def stop(self, why: Stop) -> None:
        """End the run for good: a last line of the ledger says why, and run.json that nothing follows.

        A process killed in between has ended nothing; the same stop is written again.
        """
        if (
            self.ended
            or not self.completed - 1 <= why.round <= self.completed
            or why.round >= self.info.rounds
        ):
            raise InputError(f"{self.path}: nothing is left to stop in round {why.round}.")
        anchor = ledger.append(self.path / "ledger.jsonl", [why.to_entry()], self.anchor)
        manifest = replace(self._manifest, ended=True, anchor=anchor)
        manifest.write(self.path / "run.json")
        self._manifest = manifest

    def _refuse_misplaced(self, round: int, ordered: Sequence[Release]) -> None:
        """Raise if this is not the next round, or not one message of each sender in it."""
        if round > self.completed:
            raise InputError(f"{self.path}: round {round} cannot follow {self.completed} committed rounds.")
        if self.ended and round >= self.completed:
            raise InputError(f"{self.path}: the run ended after {self.completed} rounds; none can follow.")
        if round >= self.info.rounds:
            raise InputError(f"{self.path}: round {round} is beyond the {self.info.rounds} planned rounds.")
        other = next((r.round for r in ordered if r.round != round), None)
        if other is not None:
            raise InputError(f"{self.path}: a release of round {other} cannot be committed in round {round}.")
        senders = [r.client for r in ordered]
        if len(set(senders)) < len(senders) or not set(senders) <= set(range(len(self.info.clients))):
            raise InputError(
                f"{self.path}: round {round} has releases of clients {senders}; "
                f"give at most one of each client from 0 to {len(self.info.clients) - 1}."
            )

    def _forget_states(self, *, before: int) -> None:
        """Remove the states of earlier rounds; the one before this stays for a sibling that is a round behind."""
        for path in (self.path / "state").glob("round-*.safetensors"):
            if int(path.stem.removeprefix("round-")) < before:
                path.unlink()

    def _refuse_other_bytes(self, round: int, entries: Sequence[dict[str, Any]]) -> None:
        before = [e for e in self.entries() if e["round"] == round]
        if before != list(entries):
            raise InputError(
                f"{self.path}: round {round} came out differently from what is committed; was it begun on "
                "another machine or with other versions? Train again into a new folder."
            )

    # ------------------------------------------------------------------ reading

    def entries(self) -> list[dict[str, Any]]:
        """Return the ledger's entry of each release, after checking the whole chain."""
        entries = [entry for entry in self._lines() if "stop" not in entry]
        self._refuse_foreign(entries)
        return entries

    @property
    def stopped(self) -> Stop | None:
        """Return why the run ended before all planned rounds, or ``None``.

        Raises:
            InputError: the ledger was changed or cut, or its releases, the run's budget or its rounds contradict what
                its last line says.
        """
        if not self.ended:
            return None
        try:
            why = Stop.from_entry(self._lines()[-1])
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.path}: run.json says that the run ended, and the ledger's last line does not say why "
                f"({error}); restore it or train again."
            ) from None
        wrong = why.refuted_by(
            budget=self.budget,
            clients=len(self.info.clients),
            rounds=self.completed,
            released=[(e["round"], e["client"], events.from_dict(e["event"])) for e in self.entries()],
        )
        if wrong:
            raise InputError(
                f"{self.path}: the ledger's last line says that the budget was spent, but {wrong}; one of the two was "
                "changed."
            )
        return why

    def _lines(self) -> list[dict[str, Any]]:
        path = self.path / "ledger.jsonl"
        if self.complete and path.exists() and path.stat().st_size > self.anchor.bytes:
            raise InputError(f"{path} holds more than run.json anchors; one of the two was changed.")
        lines = ledger.read(path, self.anchor) if self.anchor.lines else []
        for number, line in enumerate(lines, start=1):
            if "stop" in line and not (self.ended and number == len(lines)):
                what = "other lines follow" if number < len(lines) else "run.json says that it goes on"
                raise InputError(
                    f"{path}: line {number} ends the run, but {what}; one of the two was changed."
                )
        return lines

    def _refuse_foreign(self, entries: Sequence[dict[str, Any]]) -> None:
        """Raise if a release is of no client or round of this run, or there twice."""
        path, seen = self.path / "ledger.jsonl", set()
        for entry in entries:
            round, client = ledger.place(path, entry)
            if round >= self.completed or client >= len(self.info.clients) or (round, client) in seen:
                raise InputError(
                    f"{path} holds a release of client {client} in round {round} that has no place among one "
                    f"release of {len(self.info.clients)} clients in {self.completed} rounds; it was changed."
                )
            seen.add((round, client))

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
        file = f"candidates/{name}.safetensors"
        if not (self.path / file).exists() and file not in self._manifest.files:
            return None
        named = self._read_bound(file, "vectors", "labels", "clients")
        return Records(vectors=named["vectors"], labels=named["labels"], clients=named["clients"])

    def truth(self) -> Truth:
        """Return the answers; without them an attack has scores, but nothing to be judged by."""
        path = self.path / "truth" / "answers.safetensors"
        if not path.exists():
            raise InputError(
                f"{path} is missing: attacks cannot be judged without it; restore truth/ or train again."
            )
        named = self._read_bound("truth/answers.safetensors", "members", "canary_signs")
        for name, answers in named.items():
            if answers.dtype != np.uint8 or answers.ndim != 1 or (answers > 1).any():
                raise InputError(f"{path}: {name} must be a row of 0 and 1; it was damaged or edited.")
        hidden = {
            (round, client): found
            for round in range(self.completed)
            for client, found in self._hidden_of(round).items()
        }
        return Truth(
            members=named["members"].astype(bool),
            canary_signs=named["canary_signs"].astype(bool),
            hidden=hidden,
        )

    def _hidden_of(self, round: int) -> dict[int, Hidden]:
        """Return what each client did not send in one round, as far as it was kept."""
        if not self._hidden(round).exists():
            return {}
        named = tensors.read(self._hidden(round))
        clients = {name.partition("/")[0] for name in named}
        optional = {f"{m}/{field}": None for m in clients for field in Hidden._field_defaults}
        named = {**optional, **named}
        try:
            return {int(m): Hidden(*(named[f"{m}/{field}"] for field in Hidden._fields)) for m in clients}
        except KeyError as error:
            raise InputError(f"{self._hidden(round)} lacks {error}; restore it or train again.") from None

    def _upload(self, round: int) -> Path:
        return self.path / "uploads" / f"round-{round:06d}.safetensors"

    def _hidden(self, round: int) -> Path:
        return self.path / "truth" / f"round-{round:06d}.safetensors"

    def _state(self, round: int) -> Path:
        return self.path / "state" / f"round-{round:06d}.safetensors"


def find(root: Path) -> list[Run]:
    """Return the runs in a folder: itself, or those below it, in the order of their paths.

    Links below the folder are not followed, so that no run counts twice.
    """
    if not root.exists():
        raise InputError(f"{root} does not exist; give a folder that `privkit train` or a Recorder wrote.")
    paths = sorted(root.rglob("run.json"))
    if not paths:
        raise InputError(
            f"{root} holds no run (no run.json); give a folder that `privkit train` or a Recorder wrote."
        )
    return [Run(path.parent) for path in paths]


def _refuse_other_files(path: Path) -> None:
    """Raise if a folder cannot become a run: it is none, or it holds something else; make it if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        others = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{path} cannot be used as a folder ({error}); choose another.") from None
    if others and not (path / "run.json").exists():
        raise InputError(f"{path} holds other files and no run.json; choose another folder.")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    try:
        payload = PAYLOADS[entry["payload"]["kind"]].from_tensors(named)
    except (KeyError, ValueError):
        payload = None
    if payload is None or payload.digest() != entry["payload"]["sha256"]:
        raise InputError(f"{where} does not match its ledger line; it was damaged or changed.")
    return Release(
        round=entry["round"],
        client=entry["client"],
        payload=payload,
        event=events.from_dict(entry["event"]),
    )
