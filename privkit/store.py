"""A run directory: what was released, what it cost, and, apart from that, the auditor's truth.

::

    run.json          what was run, and how far it got: the ledger's anchor
    ledger.jsonl      one hash-chained line per release
    uploads/          one safetensors file per round whose messages are kept
    broadcast/        weights that the server sent out, one file per round, where the run writes them
    candidates/       the records (and canaries) that attacks are asked about, and those an attacker owns
    truth/            which candidates were members, canary signs, prototypes before noise: scoring only
    state/            what training needs to go on after a kill
    metrics.parquet   accuracy per round and client

A round is committed in this order: uploads, truth, state, ledger, anchor. A process killed anywhere
leaves either the round before or the round itself; what lies beyond the anchor is written again.
A run whose budget is spent ends with one more line, which says why; then it is complete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from accountant.budget import Budget
from privkit import answers, ledger, lock, sealed, tensors, uploads, verified
from privkit.errors import InputError
from privkit.manifest import Manifest
from privkit.manifest import RunInfo as RunInfo
from privkit.release import NotKept, Release
from privkit.stop import Stop
from privkit.transcript import Records, Transcript
from privkit.truth import Hidden, Truth

_CALLED = {
    "test": "test records",
    "things": "things shown",
    "left_out": "records left out",
    "classes": "names of classes",
}
"""Parts of a run's data whose names in run.json are not the words for them."""
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
        if difference.startswith("data."):
            raise InputError(
                f"{self.path} was created with other data: {_changed(self.info.data, info.data)}; "
                "use a new --out folder, or the data it was created with."
            )
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
        return self._manifest.complete

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
        return self._manifest.budget

    # ------------------------------------------------------------------ writing

    def write_questions(
        self,
        *,
        records: Records | None,
        reference: Records | None,
        canaries: Records | None,
        others: Mapping[str, Records] | None = None,
    ) -> None:
        """Write what attacks are asked about and what the attacker owns; none of it says who is a member."""
        asked = {"records": records, "reference": reference, "canaries": canaries, **(others or {})}
        for name, value in asked.items():
            if value is not None and len(value):
                self._manifest = sealed.write(self.path, self._manifest, _candidates(name), vars(value))

    def write_answers(
        self,
        *,
        members: np.ndarray = _EMPTY,
        canary_signs: np.ndarray = _EMPTY,
        others: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Write who is a member, and how the canaries were planted, those of other kinds by kind."""
        self._manifest = answers.write(
            self.path, self._manifest, members=members, canary_signs=canary_signs, others=others or {}
        )

    def close(self) -> None:
        """Let other processes write to the folder; what was committed is there."""
        self._held = None

    def bind(self) -> None:
        """Note in run.json which questions and answers belong to this run, without waiting for a commit."""
        self._manifest.write(self.path / "run.json")

    def commit(
        self,
        round: int,
        releases: Sequence[Release],
        *,
        hidden: Mapping[int, Hidden] | None = None,
        state: Mapping[str, np.ndarray] | None = None,
        broadcast: Mapping[str, np.ndarray] | None = None,
        kept: bool = True,
    ) -> None:
        """Commit one round: everything that left the clients, and what training needs to go on.

        Args:
            round: of the messages.
            releases: one of each sender.
            hidden: what clients computed on the way, by client.
            state: what training goes on with.
            broadcast: weights that the server sent out before the round.
            kept: whether the messages are stored, or only their digests and sizes in the ledger.

        A round that is committed already must come out the same; otherwise the difference is refused
        and nothing is written.
        """
        ordered = sorted(releases, key=lambda release: release.client)
        self._refuse_misplaced(round, ordered)
        entries = [uploads.to_entry(release, kept=kept) for release in ordered]
        if round < self.completed:
            self._refuse_other_bytes(round, entries)
            return
        if kept:
            uploads.write(self.path, round, ordered)
        if broadcast is not None:
            self._manifest = sealed.write(self.path, self._manifest, _broadcast(round), dict(broadcast))
        if hidden:
            answers.write_hidden(self.path, round, hidden)
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
        if any(isinstance(r.payload, NotKept) for r in ordered):
            raise InputError(
                f"{self.path}: a message of round {round} is a digest; commit the message itself."
            )
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
        return verified.entries(self.path, self._manifest)

    @property
    def ending(self) -> str:
        """Return the sentence that the run ended before its planned rounds, or nothing; the whole chain is checked."""
        why = self.stopped
        if why is None:
            return ""
        client = self.info.clients[why.client]
        return why.sentence(client=client, completed=self.completed, planned=self.info.rounds)

    @property
    def stopped(self) -> Stop | None:
        """Return why the run ended before all planned rounds, or ``None``.

        Raises:
            InputError: the ledger was changed or cut, or its releases, the run's budget or its rounds contradict what
                its last line says.
        """
        return verified.stop(self.path, self._manifest)

    def transcript(self) -> Transcript:
        """Return everything that was released, after checking ledger and uploads against each other."""
        return Transcript.of(uploads.read(self.path, self.entries(), rounds=self.completed))

    def state(self, round: int) -> dict[str, np.ndarray]:
        """Return what training saved after this many rounds."""
        return tensors.read(self._state(round))

    def broadcast(self, round: int) -> dict[str, np.ndarray]:
        """Return the weights that the server sent out before a round, by name.

        Raises:
            InputError: they were not written down, or were changed.
        """
        if _broadcast(round) not in self._manifest.files:
            raise InputError(f"{self.path}: no weights were written down before round {round}; train again.")
        return sealed.read(self.path, self._manifest, _broadcast(round))

    def records(self, name: str) -> Records | None:
        """Return ``records``, ``reference``, ``canaries`` or another kind of canaries; ``None`` if the run has none."""
        file = _candidates(name)
        if not (self.path / file).exists() and file not in self._manifest.files:
            return None
        named = sealed.read(self.path, self._manifest, file, "vectors", "labels", "clients")
        return Records(vectors=named["vectors"], labels=named["labels"], clients=named["clients"])

    def truth(self) -> Truth:
        """Return the answers; without them an attack has scores, but nothing to be judged by."""
        return answers.read(self.path, self._manifest)

    def _state(self, round: int) -> Path:
        return self.path / "state" / f"round-{round:06d}.safetensors"


def find(root: Path) -> list[Run]:
    """Return the runs in a folder: itself, or those below it, in the order of their paths.

    Links below the folder are not followed, so that no run counts twice.
    """
    refuse_no_folder(root)
    paths = sorted(root.rglob("run.json"))
    if not paths:
        raise InputError(
            f"{root} holds no run (no run.json); give a folder that `privkit train` or a Recorder wrote."
        )
    return [Run(path.parent) for path in paths]


def refuse_no_folder(root: Path) -> None:
    """Raise if there is no folder where runs are looked for."""
    if not root.is_dir():
        what = "is no folder" if root.exists() else "does not exist"
        raise InputError(f"{root} {what}; give a folder that `privkit train` or a Recorder wrote.")


def _refuse_other_files(path: Path) -> None:
    """Raise if a folder cannot become a run: it is none, or it holds something else; make it if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        others = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"{path} cannot be used as a folder ({error}); choose another.") from None
    if others and not (path / "run.json").exists():
        raise InputError(f"{path} holds other files and no run.json; choose another folder.")


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return, in words, what of a run's data is not what it was."""
    names = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
    found: dict[str, list[str]] = {}
    for name in names:
        what, _, domain = name.partition(".")
        found.setdefault(domain, []).append(_CALLED.get(what, what))
    said = [f"{' and '.join(what)}{f' of {domain}' if domain else ''}" for domain, what in found.items()]
    return f"{', '.join(said)} changed"


def _broadcast(round: int) -> str:
    return f"broadcast/round-{round:06d}.safetensors"


def _candidates(name: str) -> str:
    return f"candidates/{name}.safetensors"
