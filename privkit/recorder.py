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

With a budget, nothing is recorded that would exceed it, and the recorder may end early once something would have.
Ask before your own mechanism draws any noise::

    recorder.reserve(client=m, event=event)                      # raises BudgetExceededError

Nothing is drawn from a seed: which canaries are negated comes from the operating system, so the code
under audit cannot know.
"""

import secrets
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from accountant.budget import Budget
from accountant.contract import DependsOn
from accountant.events import Event
from privkit import canary, fits, terms
from privkit.clean import hidden
from privkit.defenses._base import Known, Mechanism
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.inbox import Inbox
from privkit.noise import SecureNoise
from privkit.release import ByClass, Payload, Release
from privkit.store import Run, RunInfo
from privkit.transcript import Records
from privkit.truth import Hidden
from privkit.whole import whole


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
        budget: Budget | tuple[float, float] | None = None,
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
            budget: the most that each client may spend, all its releases together. A pair (epsilon, delta) allows noise
                and rounds to be chosen from earlier outputs; ``Budget(...)`` says whether that is so.
            canaries: planted per client; 0 plants none.
            canary_norm: length of a canary; choose it above your clip norm, so that a missing clip shows.
            config: anything that describes the run, as plain values.

        Raises:
            InputError: the folder holds something, or a number is out of range.
        """
        clients, rounds = whole("clients", clients, least=1), whole("rounds", rounds, least=1)
        num_classes, dim = whole("num_classes", num_classes, least=1), whole("dim", dim, least=1)
        canaries = whole("canaries", canaries, least=0)
        promised, limit = terms.promise(promise), terms.limit(budget)
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
            promise=promised,
            budget=limit and limit.to_dict(),
            config=dict(config or {}),
            versions={name: version(name) for name in ("privkit-audit", "numpy")},
        )
        self.run = Run.create(path, info)
        self._inbox = Inbox(self.run)
        self._known: dict[int, Known] = {}
        self._asked = False
        self._write(members=np.zeros(0, dtype=bool))

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

        Raises:
            InputError: shapes, labels or clients do not fit the run, a member is a non-member as well, or it was
                asked before.
        """
        if self._asked:
            raise InputError(f"{self.run.path}: ask was called before; put all records into one call.")
        records = fits.records(self.run.info, vectors, labels, clients)
        member = np.asarray(members)
        if member.shape != (len(records),) or member.dtype != bool:
            raise InputError(
                f"members has shape {member.shape} and type {member.dtype}; give one truth value per record."
            )
        fits.refuse_overlap(str(self.run.path), records, member)
        owned = None if reference is None else fits.records(self.run.info, *reference)
        self._write(members=member, records=records, reference=owned)
        self._asked = True

    def plant(self, client: int, vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a client's embeddings and labels with its canaries added; release all of them together.

        Returns:
            New arrays, float64 [N + canaries, d] and int64 [N + canaries].

        Raises:
            InputError: shapes, labels or the client do not fit the run.
        """
        real = fits.records(self.run.info, vectors, labels, np.full(len(labels), client))
        z, y = real.vectors.astype(np.float64), real.labels.copy()
        if self._canaries is None or self._signs is None:
            return z, y
        mine = canary.planted(self._canaries, self._signs).of(client)
        return np.concatenate([z, mine.vectors]), np.concatenate([y, mine.labels])

    def real(self, payload: ByClass) -> ByClass:
        """Return a payload without the canaries' prototypes, for the server to go on with."""
        return payload.only(payload.labels < self.run.info.num_classes)

    def reserve(self, *, client: int, event: Event) -> None:
        """Raise unless a client can afford a release; ask before any of its noise is drawn. It reserves nothing else.

        Raises:
            BudgetExceededError: the release would exceed the budget; after that, the recorder may end early.
            ValueError: the release is stated for other neighbours than the client's earlier ones, or the budget has
                no meaning for it.
        """
        self._inbox.reserve(client, event)

    def record(
        self,
        *,
        round: int,
        client: int,
        payload: Payload,
        event: Event,
        clean: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> None:
        """Record one message; a round is committed when all of its clients have sent theirs.

        Args:
            round: the round that is open.
            client: who sends.
            payload: what is sent.
            event: what it costs.
            clean: what was computed before the noise, for the auditor alone: its rows as released, shape [P, d]. The
                audit then also checks noise, clip and counts, not only what canaries show.
            groups: with ``clean`` and noise by group: the group of each coordinate, shape [d].
            counts: with ``clean`` and noisy counts: the true ones, shape [P].

        Raises:
            BudgetExceededError: the message would exceed the budget; it is not recorded.
            InputError: the message, or what was computed before its noise, does not fit the run.
        """
        message = Release(round=round, client=client, payload=payload, event=event)
        if clean is None and (groups is not None or counts is not None):
            raise InputError(
                "groups or counts were given without clean; give the vectors before noise as well."
            )
        known = None if clean is None else hidden(message, clean, groups=groups, counts=counts)
        self._record(message, known)

    def _record(self, release: Release, hidden: Hidden | None) -> None:
        """Record one message, with what was computed on the way to it where that is known."""
        self._inbox.refuse_misplaced(release.round, release.client)
        fits.refuse_misfit(self.run.info, release.payload, canaries=self._canaries)
        self._inbox.add(release, hidden)

    def release(
        self,
        mechanism: Mechanism,
        *,
        round: int,
        client: int,
        vectors: np.ndarray,
        labels: np.ndarray,
        encoder: DependsOn,
    ) -> ByClass:
        """Release a client's embeddings through a privkit mechanism, canaries included, and record the message.

        The noise comes from the operating system's cryptographic generator.

        Args:
            mechanism: for example ``Igpp(epsilon=2.0).mechanism(rounds=10)``.
            round: the round that is open.
            client: who sends.
            vectors: embedding of each record, shape [N, d].
            labels: class of each, shape [N].
            encoder: what the map from record to embedding was computed from.

        Returns:
            What the server goes on with: the message without the canaries' prototypes.

        Raises:
            BudgetExceededError: the message would exceed the budget; no noise was drawn for it.
        """
        z, y = self.plant(client, vectors, labels)
        known = self._known.get(client) or Known.at_first(
            client=client,
            classes=self.run.info.num_classes,
            canaries=self._canaries,
            owned=self.run.records("reference"),
        )
        embeddings = Embeddings(vectors=z, labels=y, encoder=encoder)
        self.reserve(client=client, event=mechanism.event(embeddings, known))
        sent = mechanism.privatize(embeddings, SecureNoise(), known)
        message = Release(round=round, client=client, payload=sent.payload, event=sent.event)
        self._record(message, sent.hidden)
        self._known[client] = known._replace(memory=mechanism.remember(known, sent))
        return self.real(sent.payload)

    def __enter__(self) -> "Recorder":
        """Return the recorder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the run early if its budget is spent; else refuse to end with rounds missing, unless something failed.

        The folder is let go, however it ends.
        """
        try:
            self._inbox.end(kind)
        finally:
            self._inbox.close()

    def _write(
        self, *, members: np.ndarray, records: Records | None = None, reference: Records | None = None
    ) -> None:
        self.run.write_questions(records=records, reference=reference, canaries=self._canaries)
        signs = np.zeros(0, dtype=bool) if self._signs is None else self._signs
        self.run.write_answers(members=members, canary_signs=signs)
        self.run.bind()


def _designed(clients: int, count: int, dim: int, norm: float | None, num_classes: int) -> Records | None:
    if not count:
        return None
    if norm is None:
        raise InputError(
            "canary_norm is missing; give a length above your clip norm, for example 3 times it."
        )
    return canary.design(
        clients=clients,
        count=count,
        dim=dim,
        norm=norm,
        num_classes=num_classes,
        seed=secrets.randbits(128),
        per_class=canary.PER_CLASS,
    )
