"""Runs that send trained heads: what training did to one, as if a gradient had been sent.

A client sends its head, gets one back, trains, and sends its head again: the difference is what its records did, a
change that attacks on gradients read (:mod:`attacks.gradient`). Who has it all has also what every candidate would have
put into the head at the weights that the client began from. All of a client's records take part in every round, so what
is asked is whether a record is one of them.

A map that the client keeps to itself is unknown: candidates then go to the head as they are (``identity``), behind the
map that the uploads suggest (``estimated``), or behind the true one, which no server has (``own``).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from attacks._base import OWN_MORE, NotApplicableError
from attacks._estimated_map import ROUNDS, Shown, behind, estimated
from attacks._models import Model, read, unsent
from attacks._passes import joined, passes
from attacks.gradient._base import PersonalMap
from privkit.config import RunConfig
from privkit.exposure import ClientRecords, Exposure, GradientView
from privkit.methods._base import Sends
from privkit.release import Payload, Release, Update
from privkit.store import Run, RunInfo
from privkit.transcript import Records, ServerView

Models = Mapping[int, Model]
"""By client."""
NO_MAP = "clients keep no map between embedding and head: there is none to know"
MOST_PUBLIC = 400
"""Records of its own that an attacker passes in every round."""


def shows_steps(run: Run, config: RunConfig | None) -> bool:
    """Return whether a run's clients sent heads of one architecture in several rounds, on frozen features."""
    if config is None or config.mixed is not None or config.model.inside:
        return False
    head = "head.weight" if config.model.temperature is None else "head.vectors"
    sends = config.method.sends is Sends.WEIGHTS and config.method.sends_weight(head)
    return sends and run.completed > 1


def asked(records: Records) -> ClientRecords:
    """Return the same candidates with the question whether their client trains on them."""
    return ClientRecords(vectors=records.vectors, labels=records.labels, clients=records.clients)


@dataclass(frozen=True, eq=False)
class Step:
    """What the clients of a run did between two messages.

    Attributes:
        round: of the later message.
        began: parameters that each client began from, of those that were sent, by client.
        ended: what each sent afterwards.
    """

    round: int
    began: Mapping[int, Update]
    ended: Mapping[int, Release]


def steps(view: ServerView, config: RunConfig, info: RunInfo) -> Iterator[Step]:
    """Yield what clients did between every two messages, by playing the server again: it knows what it answered.

    Args:
        view: all releases.
        config: of the run, whose method and server are asked again.
        info: likewise.
    """
    server, method = config.answering, config.method
    assert info.seed is not None
    state = server.start(method, dim=info.dim, num_classes=info.num_classes, seed=info.seed)
    began: dict[int, Update] = {}
    for round in view.rounds:
        sent = {r.client: r for r in view.releases if r.round == round}
        if began:
            yield Step(round, began, {client: r for client, r in sent.items() if client in began})
        state = server.merge(method, state, {client: r.payload for client, r in sent.items()})
        began = {client: _received(config, state, client, r.payload) for client, r in sent.items()}


def _received(config: RunConfig, state: Mapping[str, np.ndarray], client: int, sent: Payload) -> Update:
    """Return the parameters that a client trains on from, once it has its answer."""
    import torch

    from privkit.train.answers import stacked_answers

    assert isinstance(sent, Update)
    method, server = config.method, config.answering
    down = stacked_answers(
        [server.down(method, dict(state), client)], [server.shared(method, dict(state))], torch.tensor([0])
    )
    params = {name: torch.from_numpy(array.copy())[None] for name, array in sent.named.items()}
    with torch.no_grad():
        method.receive(params, down)
    return Update(named={name: p[0].numpy() for name, p in params.items()}, means="weights")


@dataclass(frozen=True, eq=False)
class Steps:
    """All that the server of a run has of the steps between messages, and what it can compute about candidates.

    Attributes:
        view: what it was sent, and owns.
        candidates: that are asked about.
        config: of the run.
        info: likewise.
        personal: all parameters of clients after so many rounds, which no server has.
    """

    view: ServerView
    candidates: ClientRecords
    config: RunConfig
    info: RunInfo
    personal: Callable[[int], Mapping[int, Update]]

    def by_round(self, personal_map: PersonalMap = "identity") -> Iterator[tuple[int, GradientView]]:
        """Yield, message by message after the first, what it adds to what its client began from.

        Args:
            personal_map: what candidates pass that clients keep. The true maps are those of the last step, all that a
                run keeps of them: earlier ones are left out then.

        Raises:
            NotApplicableError: clients keep no map, or it is not known.
        """
        if personal_map != "identity" and not unsent(self.view):
            raise NotApplicableError(NO_MAP)
        mapped = {"identity": _plain, "estimated": _Estimated(self), "own": self._own}[personal_map]
        for step in steps(self.view, self.config, self.info):
            models = mapped(step, self._models(step))
            if not models:
                continue
            names = next(iter(models.values())).layers
            changes = tuple(_change(step, client, names) for client in sorted(step.ended))
            own = self._owned()
            found = replace(
                self._empty(),
                releases=changes,
                asked={step.round: _through(models, self.candidates)},
                public={} if own is None else {step.round: _through(models, own)},
            )
            yield step.round, found

    def whole(self) -> GradientView:
        """Return all changes, with the losses of all candidates at the weights of every round, and no passes."""
        changes: list[Release] = []
        losses: list[np.ndarray] = []
        last: Models = {}
        for step in steps(self.view, self.config, self.info):
            last = self._models(step)
            names = next(iter(last.values())).layers
            changes += [_change(step, client, names) for client in sorted(step.ended)]
            losses.append(_through(last, self.candidates).losses)
        return replace(self._empty(), releases=tuple(changes), losses=np.stack(losses, axis=1))

    def _models(self, step: Step) -> Models:
        """Return what each client began a step from, as far as it was sent."""
        return {client: read(payload, self.view.setup) for client, payload in step.began.items()}

    def _own(self, step: Step, models: Models) -> Models:
        """Return models behind the true maps, of the last step; nothing of earlier ones."""
        if step.round != self.view.rounds[-1]:
            return {}
        kept = self.personal(step.round)
        return {
            client: Model({**kept[client].named, **model.named}, model.setup)
            for client, model in models.items()
        }

    def _empty(self) -> GradientView:
        """Return a view of nothing, with what is public of every upload."""
        return GradientView(
            releases=(),
            reference=self._owned(),
            setup=self.view.setup,
            batch_size=self.batch_size,
            repeatable=not self.config.model.dropout,
        )

    @property
    def batch_size(self) -> int:
        """Return about how many records a client has: half of its candidates, since the split is public."""
        clients = len(np.unique(self.candidates.clients))
        return max(1, round(len(self.candidates) / (2 * max(clients, 1))))

    def _owned(self) -> Records | None:
        reference = self.view.reference
        if reference is None or not len(reference):
            return None
        kept = np.linspace(0, len(reference) - 1, min(len(reference), MOST_PUBLIC)).round().astype(int)
        return reference.where(kept)


def _plain(step: Step, models: Models) -> Models:
    return models


class _Estimated:
    """Puts the rotation before each client's head that its last few steps suggest."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._shown: dict[int, list[Shown]] = {}

    def __call__(self, step: Step, models: Models) -> Models:
        owned, blocks = self._steps.view.reference, self._steps.view.setup.blocks
        if owned is None or not len(owned):
            raise NotApplicableError(f"the attacker owns no records to estimate a map by; {OWN_MORE}")
        records, found = self._steps.batch_size, {}
        for client, model in models.items():
            change = _change(step, client, model.layers[:1]).payload
            assert isinstance(change, Update)
            seen = self._shown.setdefault(client, [])
            seen.append(Shown(model, change.named[model.layers[0]]))
            del seen[:-ROUNDS]
            found[client] = behind(model, estimated(seen, owned.of(client), blocks=blocks, records=records))
        return found


def _change(step: Step, client: int, names: list[str]) -> Release:
    """Return a message with what it adds to the head that its client began from, each map with its outputs first."""
    release = step.ended[client]
    assert isinstance(release.payload, Update)
    ended, began = release.payload.named, step.began[client].named
    named = {name: (ended[name].astype(np.float64) - began[name]).T for name in names}
    return replace(release, payload=Update(named=named, means="delta"))


def _through(models: Models, records: Records) -> Exposure:
    """Return the passes of records, each through the model of its own client, or of the first that has one."""
    order = np.argsort(records.clients, kind="stable")
    parts = [
        passes(models.get(client, next(iter(models.values()))), own.vectors, own.labels)
        for client in np.unique(records.clients).tolist()
        for own in [records.of(client)]
    ]
    return joined(parts, np.argsort(order))
