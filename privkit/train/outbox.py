"""What the clients of one run send: their mechanism, what it remembers of each, and what each may still spend."""

from collections.abc import Mapping

import numpy as np

from accountant import events
from privkit import canary
from privkit.allowance import Allowance
from privkit.canaries._base import AbstractCanaries
from privkit.defenses._base import Private
from privkit.embeddings import Embeddings
from privkit.errors import InputError
from privkit.methods._base import State
from privkit.noise import Purpose, SeededNoise, keyed
from privkit.release import Release
from privkit.store import Run
from privkit.study import Plan
from privkit.train import study as studies
from privkit.train.encoded import Encoded
from privkit.transcript import Records
from privkit.truth import Hidden


class Outbox:
    """The messages of one run, with its canaries planted and its budget kept."""

    def __init__(self, plan: Plan, run: Run, data: Encoded) -> None:
        """Take a run that was opened for training; nothing is sent yet."""
        self.run, self.seed = run, plan.seed
        self._mechanism = plan.config.defense.mechanism(rounds=plan.config.rounds)
        self._config = plan.config
        self._planted = _planted(run)
        self._others = _others(plan, run, data)
        self._known = studies.known(plan, data)
        self._allowance: Allowance | None = None

    def begin(self, round: int) -> None:
        """Count what the ledger says was spent before a round."""
        if self.run.budget is None:
            return
        before = (entry for entry in self.run.entries() if entry["round"] < round)
        spent = ((entry["client"], events.from_dict(entry["event"])) for entry in before)
        self._allowance = Allowance(self.run.budget, spent)

    def embeddings(
        self,
        client: int,
        vectors: np.ndarray,
        labels: np.ndarray,
        *,
        round: int,
        statistics: np.ndarray | None = None,
    ) -> Embeddings:
        """Return what a client would release in a round, its canaries included."""
        model = self._config.architecture(client).model
        depends_on = self._config.method.encoder_depends_on(model)
        own = Embeddings(vectors=vectors, labels=labels, encoder=depends_on, statistics=statistics)
        others = [kind.planted(asked, answers, round=round) for kind, asked, answers in self._others]
        for planted in ([] if self._planted is None else [self._planted]) + others:
            mine = planted.of(client)
            own = own.with_records(mine.vectors, mine.labels)
        return own

    def stop_if_exhausted(self, round: int, messages: Mapping[int, Private]) -> None:
        """End the run if a client cannot afford its next message; no noise of this round is drawn yet."""
        if self._allowance is None or round < self.run.completed:
            return
        for client, mine in messages.items():
            event = self._mechanism.cost(mine, self._known[client])
            why = self._allowance.exceeded(round=round, client=client, event=event)
            if why is not None:
                self.run.stop(why)
                return

    def release(self, round: int, messages: Mapping[int, Private]) -> list[tuple[Release, Hidden | None]]:
        """Return every sender's message, with what was computed on the way to it."""
        return [self._one(round, client, mine) for client, mine in messages.items()]

    def _one(self, round: int, client: int, private: Private) -> tuple[Release, Hidden | None]:
        mechanism, known = self._mechanism, self._known[client]
        generator = keyed(self.seed, Purpose.RELEASE, round=round, client=client)
        announced = mechanism.cost(private, known)
        sent = mechanism.send(private, SeededNoise(generator), known)
        if sent.event != announced:
            raise InputError(
                f"{type(mechanism).__name__} said that client {client}'s message of round {round} would cost "
                f"{announced}, and it cost {sent.event}; let event() return what privatize() spends."
            )
        self._known[client] = sent.known
        if self._allowance is not None:
            self._allowance.add(client, sent.event)
        return Release(round=round, client=client, payload=sent.payload, event=sent.event), sent.hidden

    def memory(self) -> State:
        """Return what the mechanism remembers of every client, by name."""
        return {
            f"{m}.{name}": kept for m, known in enumerate(self._known) for name, kept in known.memory.items()
        }

    def restore(self, memory: Mapping[str, np.ndarray]) -> None:
        """Take back what :meth:`memory` returned."""
        self._known = [known._replace(memory=below(memory, f"{m}.")) for m, known in enumerate(self._known)]


def below(named: Mapping[str, np.ndarray], prefix: str) -> State:
    """Return the entries whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}


def _planted(run: Run) -> Records | None:
    canaries = run.records("canaries")
    return None if canaries is None else canary.planted(canaries, run.truth().canary_signs)


def _others(plan: Plan, run: Run, data: Encoded) -> list[tuple[AbstractCanaries, Records, np.ndarray]]:
    designed = studies.other_canaries(plan, data)
    answers = run.truth().others if designed else {}
    return [(kind, asked, answers[kind.name]) for kind, asked in designed.items()]
