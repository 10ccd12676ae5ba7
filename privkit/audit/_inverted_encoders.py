"""The three encoders that an inverting attacker may hold: a frozen backbone, and an adapter for each client."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attacks._base import NotApplicableError
from attacks.hijack._base import Tier
from privkit.audit.scored import RunView
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.methods._base import State
from privkit.models._cache import sha256_of
from privkit.network import Network
from privkit.release import ByClass
from privkit.train.answers import stacked_answers
from privkit.train.cohort import Client, Cohort
from privkit.train.local import Fleet
from privkit.transcript import Records

_MODAL = (nn.modules.batchnorm._BatchNorm, nn.modules.dropout._DropoutNd)


@dataclass(frozen=True, eq=False)
class Encoders:
    """One map from image to embedding per client.

    Attributes:
        backbone: what all share, frozen.
        model: what comes after it.
        params: its parameters, by name, each with the client axis first.
    """

    backbone: nn.Module
    model: Network
    params: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        # batch statistics and dropout would make an image's embedding depend on the others, and on chance
        if any(part.training and isinstance(part, _MODAL) for part in self.backbone.modules()):
            raise InputError(
                "the encoder is in training mode, where an embedding depends on the batch; call eval() in module()"
            )

    def __call__(self, images: Tensor, clients_N: Tensor) -> Tensor:
        """Return the embedding of each image under the encoder of its client, shape [N, d]."""
        return self.embed(self.backbone(images), clients_N)

    def embed(self, x_Nd: Tensor, clients_N: Tensor) -> Tensor:
        """Return the embedding of each backbone feature under the encoder of its client, shape [N, d]."""
        own = {name: p[clients_N] for name, p in self.params.items()}
        return self.model.embed(own, x_Nd.unsqueeze(1)).squeeze(1)

    @torch.no_grad()
    def embedded(self, records: Records) -> np.ndarray:
        """Return the embedding of each record, float64 of shape [N, d]."""
        x_Nd = torch.from_numpy(records.vectors.astype(np.float32))
        return self.embed(x_Nd, torch.from_numpy(records.clients)).double().numpy()

    def digest(self) -> list[str]:
        """Return the sha256 of every parameter, in the order of their names."""
        return [sha256_of(self.params[name].numpy()) for name in sorted(self.params)]


def held(tier: Tier, view: RunView, config: RunConfig) -> Encoders:
    """Return the encoders that an attacker of some tier holds.

    Raises:
        NotApplicableError: it owns no records to train a shadow on.
        InputError: the encoder gives no gradients, or the run has lost its final state.
    """
    params = {"public": broadcast, "shadow": shadow, "client": trained}[tier](view, config)
    return Encoders(config.encoder.module().requires_grad_(False), Network(config.model), params)


def broadcast(view: RunView, config: RunConfig) -> dict[str, Tensor]:
    """Return the parameters that every client starts from."""
    info = view.run.info
    start = Network(config.model).start(dim=info.dim, num_classes=info.num_classes, seed=info.seed or 0)
    return {name: torch.from_numpy(np.stack([p] * len(info.clients))) for name, p in start.items()}


def trained(view: RunView, config: RunConfig) -> dict[str, Tensor]:
    """Return the parameters that every client ends with."""
    saved = view.run.state(view.run.completed)
    return {name: torch.from_numpy(saved[f"params.{name}"]) for name in broadcast(view, config)}


def shadow(view: RunView, config: RunConfig) -> dict[str, Tensor]:
    """Return what the clients' training makes of the attacker's own records of each client's domain.

    Everything the server broadcast is replayed; only the records differ, and the order of the batches.
    """
    cohort = Cohort.stack(_shadow_clients(view), torch.device("cpu"))
    order = [client.index for client in cohort.clients]
    start = {name: p[order] for name, p in broadcast(view, config).items()}
    fleet = Fleet.start(
        Network(config.model), cohort, start, training=config.method.training, rule=config.defense.local
    )
    for round, state in enumerate(_broadcasts(view, config)):
        each = [config.answering.down(config.method, state, client) for client in order]
        down = stacked_answers(each, [config.answering.shared(config.method, state)], cohort.runs)
        fleet.train_round(round, config.method, down)
    back = np.argsort(order)
    return {name: p[back] for name, p in fleet.params.items()}


def _shadow_clients(view: RunView) -> list[Client]:
    clients = []
    for m, name in enumerate(view.run.info.clients):
        owned = None if view.reference is None else view.reference.of(m)
        if owned is None or not len(owned):
            raise NotApplicableError(
                f"the attacker owns no records of {name} to train an adapter on; set split.reference above 0"
            )
        x = owned.vectors.astype(np.float32)
        # the attacker does not know the seed of the client's batches
        seed = (view.run.info.seed or 0) + 1
        clients.append(
            Client(run=0, index=m, seed=seed, x=x, y=owned.labels, x_test=x[:0], y_test=owned.labels[:0])
        )
    return clients


def _broadcasts(view: RunView, config: RunConfig) -> list[State]:
    """Return the server's state after each round, as the server itself computed it from what it got."""
    info, server = view.run.info, config.answering
    state = server.start(config.method, dim=info.dim, num_classes=info.num_classes, seed=info.seed or 0)
    states = []
    for round in range(view.run.rounds):
        got = {r.client: r.payload for r in view.transcript.releases if r.round == round}
        uploads = {m: p.only(p.labels < info.num_classes) for m, p in got.items() if isinstance(p, ByClass)}
        state = server.merge(config.method, state, uploads)
        states.append(state)
    return states
