"""Runs of heads that are sent every round, without a training loop: what a server sees, questions and answers."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from accountant.events import NonPrivate
from privkit.release import Head, Payload, Release, Update
from privkit.store import Run, RunInfo
from privkit.transcript import InsiderView, Records, ServerView, Transcript

CLIENTS, CLASSES, DIM, MEMBERS, REFERENCE, ROUNDS = 2, 4, 24, 40, 120, 4


@dataclass(frozen=True, eq=False, kw_only=True)
class Scene:
    """What the server saw, the questions, and the answers."""

    releases: tuple[Release, ...]
    reference: Records | None
    records: Records
    members: np.ndarray

    @property
    def view(self) -> ServerView:
        return Transcript(self.releases).seen_by_server(self.reference)

    def held_by_insider(self, personal: Mapping[int, Update]) -> InsiderView:
        """Return what an insider with some models sees."""
        return InsiderView(self.releases, self.reference, personal=personal)

    def sending(self, payload: Payload) -> "Scene":
        """Return the same run, in which everybody always sent one payload."""
        return replace(self, releases=tuple(replace(r, payload=payload) for r in self.releases))


def population(seed: int, each: int, *, wrong: float = 0.0) -> Records:
    """Draw labelled vectors around one centre per class, so many of each client; a share of labels is drawn anew."""
    rng = np.random.default_rng(seed)
    clients = np.repeat(np.arange(CLIENTS), each)
    labels = rng.integers(0, CLASSES, len(clients))
    centres = np.random.default_rng(0).standard_normal((CLASSES, DIM))
    vectors = 0.4 * centres[labels] + rng.standard_normal((len(labels), DIM))
    drawn = rng.integers(0, CLASSES, len(labels))
    labels = np.where(rng.random(len(labels)) < wrong, drawn, labels)
    return Records(vectors=vectors, labels=labels, clients=clients)


def fitted(
    records: Records, steps: int, start: Mapping[str, np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Return a head after full-batch gradient descent on cross-entropy, float32."""
    w = np.zeros((DIM, CLASSES)) if start is None else start["head.weight"].astype(np.float64)
    b = np.zeros(CLASSES) if start is None else start["head.bias"].astype(np.float64)
    x, y = records.vectors, np.eye(CLASSES)[records.labels]
    for _ in range(steps):
        z = x @ w + b
        p = np.exp(z - z.max(1, keepdims=True))
        left = p / p.sum(1, keepdims=True) - y
        w, b = w - 0.5 * x.T @ left / len(x), b - 0.5 * left.mean(0)
    return {"head.weight": w.astype(np.float32), "head.bias": b.astype(np.float32)}


def scene(seed: int = 1, *, steps: int = 100, leaks: bool = True, wrong: float = 0.0) -> Scene:
    """Return a run whose clients send their heads; where it does not leak, they train on records nobody asks about."""
    members, others = (population(s, MEMBERS, wrong=wrong) for s in (seed, seed + 1000))
    trained_on = members if leaks else population(seed + 3000, MEMBERS, wrong=wrong)
    releases = []
    for client in range(CLIENTS):
        sent: dict[str, np.ndarray] = {
            "head.weight": np.full((DIM, CLASSES), 0.01, dtype=np.float32),
            "head.bias": np.zeros(CLASSES, dtype=np.float32),
        }
        for t in range(ROUNDS):
            payload = Update(named=sent, means="weights")
            releases.append(Release(round=t, client=client, payload=payload, event=NonPrivate()))
            sent = fitted(trained_on.of(client), steps, sent)
    return Scene(
        releases=tuple(sorted(releases, key=lambda r: (r.round, r.client))),
        reference=population(seed + 2000, REFERENCE, wrong=wrong),
        records=joined(members, others),
        members=np.arange(2 * len(members)) < len(members),
    )


def joined(*parts: Records) -> Records:
    return Records(
        vectors=np.concatenate([part.vectors for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        clients=np.concatenate([part.clients for part in parts]),
    )


def as_head(update: Payload) -> Head:
    """Return the weights of an update, without its bias, as the other kind of payload that is a head."""
    assert isinstance(update, Update)
    return Head(weights=update.named["head.weight"].T)


def saved(one: Scene, path: Path) -> Run:
    """Write a scene to a run directory."""
    info = RunInfo(
        cell="heads",
        seed=1,
        rounds=ROUNDS,
        clients=tuple(f"client {m}" for m in range(CLIENTS)),
        num_classes=CLASSES,
        dim=DIM,
    )
    run = Run.create(path, info)
    run.write_questions(records=one.records, reference=one.reference, canaries=None)
    run.write_answers(members=one.members)
    for t in range(ROUNDS):
        run.commit(t, [r for r in one.releases if r.round == t])
    return run
