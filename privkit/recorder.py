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
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from accountant import check
from accountant.budget import Budget, BudgetExceededError
from accountant.contract import DependsOn
from accountant.events import Event
from privkit import canary
from privkit.allowance import Allowance
from privkit.defenses._base import Known, Mechanism
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.noise import SecureNoise
from privkit.release import ByClass, Head, Payload, Release, frozen, frozen_whole
from privkit.stop import Stop
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
        if promise is not None:
            promise = _pair("promise", promise)
            check.positive(epsilon=promise[0])
            check.open_unit(delta=promise[1])
        limit = _limit(budget)
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
            budget=limit and limit.to_dict(),
            config=dict(config or {}),
            versions={name: version(name) for name in ("privkit-audit", "numpy")},
        )
        self.run = Run.create(path, info)
        self._pending: dict[int, tuple[Release, Hidden | None]] = {}
        self._known: dict[int, Known] = {}
        self._allowance = Allowance(limit)
        self._stops: dict[int, Stop] = {}
        self._asked = self._closed = False
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
            InputError: shapes, labels or clients do not fit the run, or it was asked before.
        """
        if self._asked:
            raise InputError(f"{self.run.path}: ask was called before; put all records into one call.")
        records = self._records(vectors, labels, clients)
        member = np.asarray(members)
        if member.shape != (len(records),) or member.dtype != bool:
            raise InputError(
                f"members has shape {member.shape} and type {member.dtype}; give one truth value per record."
            )
        owned = None if reference is None else self._records(*reference)
        self._write(members=member, records=records, reference=owned)
        self._asked = True

    def plant(self, client: int, vectors: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a client's embeddings and labels with its canaries added; release all of them together.

        Returns:
            New arrays, float64 [N + canaries, d] and int64 [N + canaries].

        Raises:
            InputError: shapes, labels or the client do not fit the run.
        """
        real = self._records(vectors, labels, np.full(len(labels), client))
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
        if not 0 <= client < len(self.run.info.clients):
            raise InputError(
                f"client={client}: clients are numbered from 0 to {len(self.run.info.clients) - 1}."
            )
        following = self.run.completed + (client in self._pending)
        why = self._allowance.exceeded(round=following, client=client, event=event)
        if why is None:
            return
        if following < self.run.info.rounds:
            self._stops.setdefault(client, why)
        who, spent = self.run.info.clients[client], self._allowance.spent(client)
        raise BudgetExceededError(why.budget.refusal(who, spent=spent, following=event))

    def record(self, *, round: int, client: int, payload: Payload, event: Event) -> None:
        """Record one message; a round is committed when all of its clients have sent theirs.

        Raises:
            BudgetExceededError: the message would exceed the budget; it is not recorded.
            InputError: the message does not fit the run.
        """
        self._record(Release(round=round, client=client, payload=payload, event=event), None)

    def _record(self, release: Release, hidden: Hidden | None) -> None:
        """Record one message, with what was computed on the way to it where that is known."""
        round, client = release.round, release.client
        if self._closed and not self.run.complete:
            raise InputError(f"{self.run.path}: the recorder was left; record a new run into another folder.")
        if self.run.ended:
            raise InputError(f"{self.run.path}: the budget is spent and the run has ended; record a new run.")
        if self.run.complete:
            raise InputError(
                f"all {self.run.info.rounds} rounds are recorded; create the Recorder with more of them."
            )
        if round != self.run.completed:
            raise InputError(
                f"round={round}: round {self.run.completed} is open; record the rounds in order."
            )
        if not 0 <= client < len(self.run.info.clients) or client in self._pending:
            raise InputError(
                f"client={client} in round {round}: give each of the {len(self.run.info.clients)} clients once."
            )
        self._refuse_misfit(release.payload)
        self.reserve(client=client, event=release.event)
        self._pending[client] = release, hidden
        if len(self._pending) == len(self.run.info.clients):
            try:
                self._commit()
            except Exception:
                del self._pending[client]
                raise
        self._allowance.add(client, release.event)
        self._stops.pop(client, None)  # with other noise, it could be afforded after all

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
        known = self._known.get(client, self._public(client))
        embeddings = Embeddings(vectors=z, labels=y, encoder=encoder)
        self.reserve(client=client, event=mechanism.event(embeddings, known))
        sent = mechanism.privatize(embeddings, SecureNoise(), known)
        message = Release(round=round, client=client, payload=sent.payload, event=sent.event)
        self._record(message, sent.hidden)
        self._known[client] = known._replace(memory=mechanism.remember(known, sent))
        return self.real(sent.payload)

    def _public(self, client: int) -> Known:
        """Return what a client's mechanism may read before its first message."""
        classes = self.run.info.num_classes
        labels = np.arange(classes)
        if self._canaries is not None:
            labels = np.union1d(labels, self._canaries.of(client).labels)
        owned = self.run.records("reference")
        if owned is None or not len(owned.of(client)):
            return Known(labels=labels, classes=classes)
        mine = owned.of(client)
        public = Embeddings(
            vectors=mine.vectors.astype(np.float64), labels=mine.labels, encoder=DependsOn.PUBLIC
        )
        return Known(labels=labels, classes=classes, public=public)

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
            self._finish(kind)
        finally:
            self._closed = True
            self.run.close()

    def _finish(self, kind: type[BaseException] | None) -> None:
        """End the run with the first client that could not go on, or refuse to end it."""
        failed = kind is not None and not issubclass(kind, BudgetExceededError)
        if failed or (self.run.complete and not self._pending):
            return
        if self._stops:
            self._end(next(iter(self._stops.values())))
        elif kind is None:
            raise InputError(
                f"{self.run.path}: {self.run.completed} of {self.run.info.rounds} rounds were recorded whole; "
                "record every client of every round, or create the Recorder with fewer rounds."
            )

    def _end(self, why: Stop) -> None:
        """Commit what left the clients in the open round, and end the run with the reason."""
        if self._pending:
            self._commit()
        self.run.stop(why)

    def _commit(self) -> None:
        """Commit what left the clients in the open round."""
        sent = [self._pending[m] for m in sorted(self._pending)]
        hidden = {release.client: found for release, found in sent if found is not None}
        self.run.commit(self.run.completed, [release for release, _ in sent], hidden=hidden)
        self._pending = {}

    def _write(
        self, *, members: np.ndarray, records: Records | None = None, reference: Records | None = None
    ) -> None:
        self.run.write_questions(records=records, reference=reference, canaries=self._canaries)
        signs = np.zeros(0, dtype=bool) if self._signs is None else self._signs
        self.run.write_answers(members=members, canary_signs=signs)
        self.run.bind()

    def _refuse_misfit(self, payload: Payload) -> None:
        """Raise if a payload is of another width, or of a class that neither a record nor a canary has."""
        info = self.run.info
        if isinstance(payload, ByClass | Head):
            width = next(iter(payload.tensors().values())).shape[1]
            if width != info.dim:
                raise InputError(
                    f"{payload.kind} of width {width}: this run was created with dim={info.dim}."
                )
        if isinstance(payload, ByClass):
            self._refuse_missing_canaries(payload)
            end = info.num_classes if self._canaries is None else self._canaries.labels.max() + 1
            if (payload.labels >= end).any():
                raise InputError(
                    f"label {payload.labels.max()} was released; this run was created with "
                    f"num_classes={info.num_classes}, numbered from 0."
                )

    def _refuse_missing_canaries(self, payload: ByClass) -> None:
        """Raise if canaries were designed, but what was released holds no prototype of them."""
        missing = set() if self._canaries is None else set(self._canaries.labels) - set(payload.labels)
        if missing:
            raise InputError(
                f"the payload has no prototype of canary class {min(missing)}: release what plant() returned, "
                "not what was passed to it."
            )

    def _records(self, vectors: np.ndarray, labels: np.ndarray, clients: np.ndarray) -> Records:
        """Return some real records, if they fit the run."""
        z = frozen("vectors", vectors, ndim=2)
        y = frozen_whole("labels", labels, least=0)
        m = frozen_whole("clients", clients, least=0)
        info = self.run.info
        if z.shape != (len(y), info.dim) or len(m) != len(y):
            raise InputError(
                f"vectors {z.shape}, labels {y.shape} and clients {m.shape} do not fit; "
                f"give [N, {info.dim}], [N] and [N]."
            )
        for name, values, end in (("labels", y, info.num_classes), ("clients", m, len(info.clients))):
            if (values >= end).any():
                raise InputError(f"{name} holds {values.max()}; this run numbers them from 0 to {end - 1}.")
        return Records(vectors=z, labels=y, clients=m)


def _limit(budget: object) -> Budget | None:
    """Return the budget that is kept; a pair allows noise and rounds to be chosen from earlier outputs."""
    if budget is None or isinstance(budget, Budget):
        return budget
    epsilon, delta = _pair("budget", budget)
    return Budget(epsilon=epsilon, delta=delta, adaptive=True)


def _pair(name: str, value: object) -> tuple[float, float]:
    """Return an (epsilon, delta); anything but two numbers is refused by name."""
    numbers = list(value) if isinstance(value, tuple | list) else []
    if len(numbers) != 2 or not all(isinstance(n, Real) and not isinstance(n, bool) for n in numbers):
        raise InputError(f"{name}={value!r}; give a pair (epsilon, delta), for example (2.0, 1e-5).")
    return float(numbers[0]), float(numbers[1])


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
