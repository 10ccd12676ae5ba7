"""What attackers have that no server has: the client's own encoder, or its personalised model. Both are in ``state/``.

Neither is the truth: nothing there says who was a member, and deleting ``truth/`` changes no score.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from accountant.contract import DependsOn
from attacks._base import NotApplicableError, Tier
from privkit.config import RunConfig
from privkit.errors import InputError
from privkit.release import Update
from privkit.store import Run
from privkit.transcript import InsiderView, Records, ServerView

if TYPE_CHECKING:
    from privkit.audit.scored import RunView

State = dict[str, np.ndarray]
_PARAMS = "params."


def seen_by(tier: Tier, view: "RunView", candidates: Records) -> tuple[ServerView, Records]:
    """Return what an attacker of some tier sees of a run, and its candidates as that attacker embeds them.

    Raises:
        NotApplicableError: the run keeps nothing that such an attacker would have.
    """
    server = view.server
    match tier:
        case "insider":
            held = personal(view.run, view.run.completed)
            return InsiderView(
                server.releases, server.reference, setup=server.setup, personal=held
            ), candidates
        case "client":
            encoder = _Encoder.of(view.run)
            reference = None if view.reference is None else encoder.embedded(view.reference)
            last = replace(server, reference=reference).only(encoder.round)
            return last, encoder.embedded(candidates)
        case _:
            return server, candidates


def personal(run: Run, rounds: int) -> dict[int, Update]:
    """Return the parameters that every client had after so many rounds, of which a run keeps the last two."""
    params = _params(_state(run, rounds))
    return {
        client: Update(named={name: p[client] for name, p in params.items()}, means="weights")
        for client in range(len(run.info.clients))
    }


def _state(run: Run, round: int) -> State:
    try:
        return run.state(round)
    except InputError:
        raise NotApplicableError(
            f"the run does not keep what its clients' models were after {round} rounds (state/ of `privkit train`)"
        ) from None


def _params(state: State) -> State:
    """Return the parameters of all clients by name, each with the client axis first."""
    found = {name.removeprefix(_PARAMS): p for name, p in state.items() if name.startswith(_PARAMS)}
    if not found:
        raise NotApplicableError(
            "this run mixes architectures, and a tier above the server knows runs of one"
        )
    return found


class _Encoder:
    """The encoders, one for each client, that the last releases of a run were made with."""

    def __init__(self, config: RunConfig, params: State, round: int) -> None:
        self._config, self._params, self.round = config, params, round

    @classmethod
    def of(cls, run: Run) -> "_Encoder":
        settings = dict(run.info.config)
        if not {"data", "encoder", "model"} <= set(settings):
            raise NotApplicableError("recorded by other code: the client's own encoder is not known")
        config = RunConfig.from_settings(settings, where=str(run.path))
        if config.mixed is not None:
            raise NotApplicableError("this run mixes architectures, and tier client knows runs of one")
        if config.method.encoder_depends_on(config.model) is DependsOn.PUBLIC:
            raise NotApplicableError(
                "releases are made with the frozen encoder, which is public: tier client has no more than a server"
            )
        if config.model.inside:
            raise NotApplicableError("adapters inside the encoder read pixels, and candidates are features")
        last = run.completed - 1
        if last < 1:
            raise NotApplicableError(
                "the only release was made with the encoder that was broadcast: tier client has no more than a server"
            )
        return cls(config, _params(_state(run, last)), last)

    def embedded(self, records: Records) -> Records:
        """Return records under the encoder of the client whose domain they are of."""
        import torch

        network, vectors = self._config.model.build(self._config.encoder).still, []
        order = np.argsort(records.clients, kind="stable")
        for client in np.unique(records.clients).tolist():
            own = {name: torch.from_numpy(p[client : client + 1]) for name, p in self._params.items()}
            x = torch.from_numpy(records.of(client).vectors.astype(np.float32))
            with torch.no_grad():
                vectors.append(network.embed(own, x.unsqueeze(0))[0].double().numpy())
        back = np.argsort(order)
        return Records(vectors=np.concatenate(vectors)[back], labels=records.labels, clients=records.clients)
