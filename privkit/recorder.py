"""Record a run from any training code, and audit it like our own.

::

    with privkit.Recorder("runs/mine", clients=4, rounds=10, num_classes=10, dim=64,
                          canaries=256, canary_norm=3.0) as recorder:
        recorder.ask(vectors, labels, clients, members)          # who was trained on? (optional)
        for t in range(10):
            for m in range(4):
                z, y = recorder.plant(m, embeddings[m], labels[m])
                payload, event = my_release(z, y)
                recorder.record(round=t, client=m, payload=payload, event=event)

Nothing is drawn from a seed: which canaries are negated comes from the operating system, so the code
under audit cannot know.
"""

import secrets
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from accountant import check
from accountant.events import Event
from privkit import canary
from privkit.errors import InputError
from privkit.release import Payload, Prototypes, Release
from privkit.store import Run, RunInfo
from privkit.transcript import Records


class Recorder:
    """Writes a run directory, one committed round at a time."""

    def __init__(
        self,
        path: str | Path,
        *,
        clients: int,
        rounds: int,
        num_classes: int,
        dim: int,
        promise: tuple[float, float] | None = None,
        canaries: int = 0,
        canary_norm: float | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a run directory.

        Args:
            path: folder of the run; it must be new or empty.
            clients: number of clients.
            rounds: number of rounds that will be recorded.
            num_classes: classes of the real records; canaries get labels from there on.
            dim: width of an embedding.
            promise: the (epsilon, delta) promised for the whole run, if any.
            canaries: planted per client; 0 plants none.
            canary_norm: length of a canary; choose it above your clip norm, so that a missing clip shows.
            config: anything that describes the run, as plain values.

        Raises:
            InputError: the folder holds something, or a number is out of range.
        """
        check.count(clients=clients, rounds=rounds, num_classes=num_classes, dim=dim)
        check.non_negative(canaries=canaries)
        if promise is not None:
            check.positive(epsilon=promise[0])
            check.open_unit(delta=promise[1])
        path = Path(path)
        if (path / "run.json").exists():
            raise InputError(f"{path} already holds a run; record into a new folder.")
        self._canaries = _designed(clients, canaries, dim, canary_norm, num_classes)
        self._signs = canary.signs(self._canaries, seed=secrets.randbits(128)) if self._canaries else None
        info = RunInfo(
            cell=path.name or "run",
            seed=None,
            rounds=rounds,
            clients=tuple(f"client {m}" for m in range(clients)),
            num_classes=num_classes,
            dim=dim,
            promise=promise and {"epsilon": promise[0], "delta": promise[1]},
            config=dict(config or {}),
            versions={name: version(name) for name in ("privkit-audit", "numpy")},
        )
        self.run = Run.create(path, info)
        self._pending: dict[int, Release] = {}
        self._members = np.zeros(0, dtype=bool)
        self._write()

    def ask(
        self,
        vectors: np.ndarray,
        labels: np.ndarray,
        clients: np.ndarray,
        members: np.ndarray,
        *,
        reference: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Say whose membership attacks are asked about, and what the attacker owns.

        Members and non-members must come from the same population, or a score tells the two apart
        without any leak.

        Args:
            vectors: under the encoder that is public, shape [N, d].
            labels: class of each, shape [N].
            clients: whose domain each comes from, shape [N].
            members: whether that client trained on it, shape [N].
            reference: vectors, labels and clients of records that the attacker owns.
        """
        records = _records(vectors, labels, clients)
        self._members = np.asarray(members, dtype=bool)
        if self._members.shape != (len(records),):
            raise InputError(f"members has shape {self._members.shape}; give one truth value per record.")
        owned = None if reference is None else _records(*reference)
        self._write(records, owned)

    def plant(self, client: int, vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a client's embeddings and labels with its canaries added; release all of them together."""
        if self._canaries is None or self._signs is None:
            return np.asarray(vectors), np.asarray(labels)
        mine = canary.planted(self._canaries, self._signs).of(client)
        return np.concatenate([vectors, mine.vectors]), np.concatenate([labels, mine.labels])

    def real(self, payload: Prototypes) -> Prototypes:
        """Return a payload without the canaries' prototypes, for the server to go on with."""
        return payload.only(payload.labels < self.run.info.num_classes)

    def record(self, *, round: int, client: int, payload: Payload, event: Event) -> None:
        """Record one message; a round is committed when all of its clients have sent theirs."""
        if round != self.run.completed:
            raise InputError(
                f"round={round}: round {self.run.completed} is open; record the rounds in order."
            )
        if not 0 <= client < len(self.run.info.clients) or client in self._pending:
            raise InputError(
                f"client={client} in round {round}: give each of the {len(self.run.info.clients)} clients once."
            )
        self._pending[client] = Release(round=round, client=client, payload=payload, event=event)
        if len(self._pending) == len(self.run.info.clients):
            self.run.commit(round, [self._pending[m] for m in sorted(self._pending)])
            self._pending = {}

    def _write(self, records: Records | None = None, reference: Records | None = None) -> None:
        self.run.write_questions(records=records, reference=reference, canaries=self._canaries)
        signs = np.zeros(0, dtype=bool) if self._signs is None else self._signs
        self.run.write_answers(members=self._members, canary_signs=signs)

    def __enter__(self) -> Self:
        """Return the recorder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Refuse to end with a round half recorded, unless something else went wrong already."""
        if kind is None and (self._pending or not self.run.complete):
            raise InputError(
                f"{self.run.path}: {self.run.completed} of {self.run.info.rounds} rounds were recorded whole; "
                "record every client of every round, or create the Recorder with fewer rounds."
            )


def _designed(clients: int, count: int, dim: int, norm: float | None, num_classes: int) -> Records | None:
    if not count:
        return None
    if norm is None:
        raise InputError(
            "canary_norm is missing; give a length above your clip norm, for example 3 times it."
        )
    return canary.design(
        clients=clients, count=count, dim=dim, norm=norm, num_classes=num_classes, seed=secrets.randbits(128)
    )


def _records(vectors: np.ndarray, labels: np.ndarray, clients: np.ndarray) -> Records:
    made = Records(
        vectors=np.asarray(vectors),
        labels=np.asarray(labels, dtype=np.int64),
        clients=np.asarray(clients, dtype=np.int64),
    )
    if made.vectors.ndim != 2 or not len(made.vectors) == len(made.labels) == len(made.clients):
        raise InputError(
            f"vectors {made.vectors.shape}, labels {made.labels.shape} and clients {made.clients.shape} "
            "do not fit; give [N, d], [N] and [N]."
        )
    return made
