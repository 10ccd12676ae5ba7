"""What a server has after a run of the gradient lab, from the run's folder alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from privkit.exposure import Exposure, GradientView
from privkit.finetune import questions
from privkit.finetune.guard import Guard
from privkit.finetune.lab import Lab
from privkit.finetune.model import Weights, logits
from privkit.finetune.public import Public
from privkit.finetune.questions import Asked, AskedOfClients, AskedRecords
from privkit.finetune.replay import lab_of, weights
from privkit.finetune.terms import UploadKind
from privkit.finetune.texts import Texts, joined
from privkit.finetune.trace import plain_losses, trace
from privkit.release import Release, Update
from privkit.store import Run


def view(
    run: Run,
    candidates: Asked | None = None,
    *,
    public: int = 400,
    maps: Sequence[str] | None = None,
    losses: bool = True,
    lab: Lab | None = None,
) -> GradientView:
    """Return what the server of a run has, and what it can compute about some candidates.

    Messages of weights are given as what they add to the weights that their round began with. Candidates that are asked
    about in one round are passed at its weights; of those of a client's data set see :func:`by_round`.

    Args:
        run: a run that the gradient lab trained.
        candidates: some of :func:`privkit.finetune.questions.read`, such as those of one round; by default all.
        public: the attacker uses so many of its own records at most; 0 gives it none.
        maps: which trained maps are looked at, by the names of their weights; ``None``: all. A pass of N texts keeps
            N T (d + m) numbers per map.
        losses: whether every candidate's loss at every round's weights is computed.
        lab: what the run was computed from, if it is at hand.

    Raises:
        InputError: it is no such run; data, backbone, uploads or candidates are not what it was trained with.
    """
    lab = lab or lab_of(run)
    asked = questions.read(run) if candidates is None else candidates
    return _Seen(run, lab, asked, public=public, maps=maps).whole(losses=losses)


def by_round(
    run: Run,
    candidates: AskedOfClients | None = None,
    *,
    public: int = 400,
    maps: Sequence[str] | None = None,
    lab: Lab | None = None,
) -> Iterator[tuple[int, GradientView]]:
    """Yield, round by round, what its uploads and the passes of all candidates at its weights show.

    Candidates of a client's data set are asked about in many rounds, and their passes are large: one round's are held
    at a time. Rounds that the configuration leaves out are left out.

    Args:
        run: a run that the gradient lab trained, asked about data sets of clients.
        candidates: some of them; by default all.
        public: as in :func:`view`.
        maps: as there.
        lab: as there.

    Raises:
        InputError: see :func:`view`.
    """
    lab = lab or lab_of(run)
    asked = questions.read(run) if candidates is None else candidates
    yield from _Seen(run, lab, asked, public=public, maps=maps).by_round()


def owned(run: Run, *, public: int = 400, lab: Lab | None = None) -> Iterator[tuple[int, Exposure]]:
    """Yield the passes of the attacker's own records at the weights of each round that is asked about.

    Args:
        run: a run that the gradient lab trained.
        public: so many of them at most.
        lab: what the run was computed from, if it is at hand.

    Raises:
        InputError: see :func:`view`.
    """
    lab = lab or lab_of(run)
    records, losses = lab.public.first(public), lab.guard().record_losses
    for round, named in enumerate(weights(run)):
        if round in lab.config.asked_rounds:
            lab.model.load({name: w.to(lab.device) for name, w in named.items()})
            yield round, trace(lab.model, records.texts, records.labels, losses=losses)


class _Seen:
    """What is computed on the way through the rounds."""

    def __init__(self, run: Run, lab: Lab, asked: Asked, *, public: int, maps: Sequence[str] | None) -> None:
        self.run, self.lab, self.asked, self.maps = run, lab, asked, maps
        self.texts = joined([Texts(np.zeros((0, 1), np.int64), np.zeros(0, np.int64)), *_texts(lab, asked)])
        self.owned: Public | None = lab.public.first(public) if public else None
        self.guard: Guard = lab.guard()
        self.of_asked: dict[int, Exposure] = {}
        self.of_public: dict[int, Exposure] = {}
        self.losses: list[np.ndarray] = []
        self.weights: dict[int, dict[str, np.ndarray]] = {}
        self.releases = run.transcript().releases

    def whole(self, *, losses: bool) -> GradientView:
        for round, named in enumerate(weights(self.run)):
            here = self._asked_in(round)
            self.releases = self._as_changes(round, named)
            if losses or len(here):
                self._load(named)
            if losses:
                self.losses.append(self._plain_losses())
            if len(here):
                self._pass(round, named, here)
        return self._view()

    def by_round(self) -> Iterator[tuple[int, GradientView]]:
        for round, named in enumerate(weights(self.run)):
            if round in self.lab.config.asked_rounds:
                self.of_asked, self.of_public, self.weights = {}, {}, {}
                self._load(named)
                self._pass(round, named, np.arange(len(self.asked)))
                sent = tuple(r for r in self._as_changes(round, named) if r.round == round)
                yield round, replace(self._view(), releases=sent)

    def _asked_in(self, round: int) -> np.ndarray:
        """Return which candidates are asked about in this round and in no other."""
        if not isinstance(self.asked, AskedRecords):
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.asked.rounds == round)

    def _as_changes(self, round: int, named: Weights) -> tuple[Release, ...]:
        return tuple(_as_change(r, named) if r.round == round else r for r in self.releases)

    def _load(self, named: Weights) -> None:
        self.lab.model.load({name: w.to(self.lab.device) for name, w in named.items()})

    def _pass(self, round: int, named: Weights, rows: np.ndarray) -> None:
        self.weights[round] = {name: named[name].numpy() for name in self.lab.model.maps()}
        self.of_asked[round] = self._trace(self.texts.take(rows), self.asked.labels[rows])
        if self.owned is not None:
            self.of_public[round] = self._trace(self.owned.texts, self.owned.labels)

    def _view(self) -> GradientView:
        config, reference = self.lab.config, self.run.records("reference")
        behind = self.lab.records_behind()
        senders = len(self.lab.clients) if config.secure_aggregation else 1
        whole = sum(behind.values()) if senders > 1 else config.batch * config.local_steps
        if reference is not None:
            reference = None if self.owned is None else reference.where(np.arange(len(self.owned)))
        return GradientView(
            releases=self.releases,
            reference=reference,
            batch_size=whole,
            sizes={} if senders > 1 else {k: size for k, size in behind.items() if size != whole},
            senders=senders,
            repeatable=self.guard.repeatable,
            transport=config.transport.value,
            clip=self.guard.step_clip,
            asked=self.of_asked,
            public=self.of_public,
            losses=np.stack(self.losses, axis=1) if self.losses else np.zeros((len(self.asked), 0)),
            weights=self.weights,
        )

    def _trace(self, texts: Texts, labels_N: np.ndarray) -> Exposure:
        return trace(self.lab.model, texts, labels_N, losses=self.guard.record_losses, maps=self.maps)

    def _plain_losses(self) -> np.ndarray:
        found_NC = torch.from_numpy(logits(self.lab.model, self.texts)).double()
        return plain_losses(found_NC, torch.from_numpy(self.asked.labels)).numpy()


def _as_change(release: Release, start: Weights) -> Release:
    """Return a message with what it adds to the weights that the round began with, where it holds weights."""
    sent = release.payload
    if not isinstance(sent, Update) or sent.means != UploadKind.WEIGHTS.value:
        return release
    change = {n: a.astype(np.float32) - start[n].numpy() for n, a in sent.named.items()}
    return replace(release, payload=Update(named=change, means=UploadKind.DELTA.value))


def _texts(lab: Lab, asked: Asked) -> list[Texts]:
    pairs = zip(asked.domains.tolist(), asked.rows.tolist(), strict=True)
    return [lab.clients[k].texts.take(np.array([row])) for k, row in pairs]
