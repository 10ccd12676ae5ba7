"""From runs to fleets: the clients of a batch, grouped by what they train."""

from collections.abc import Sequence

import numpy as np
import torch

from privkit.atomic import canonical_json
from privkit.data._split import Parts
from privkit.measured import NEWCOMER
from privkit.study import Plan
from privkit.train import study as studies
from privkit.train.cohort import Client, Cohort
from privkit.train.encoded import Encoded
from privkit.train.first import first_parameters
from privkit.train.local import Fleet


def fleets(plans: Sequence[Plan], data: Encoded, device: torch.device) -> list[Fleet]:
    """Return the clients of some runs that are trained together, one fleet per architecture.

    Args:
        plans: the runs; they agree in everything but seed and release.
        data: under the encoder of each client.
        device: to train on.
    """
    config = plans[0].config
    groups: dict[str, list[Client]] = {}
    for client in _clients(plans, data):
        one = config.architecture(client.index)
        # features are the same kind of input whatever encoder gave them
        parts = [one.model.model_dump(mode="json"), one.encoder.settings() if one.model.inside else None]
        groups.setdefault(canonical_json(parts), []).append(client)
    return [_fleet(plans, data, clients, device) for clients in groups.values()]


def newcomers(plans: Sequence[Plan], data: Encoded, device: torch.device) -> Fleet | None:
    """Return one client per run that never trains, tested on the domain that is held out.

    Returns:
        a fleet; ``None`` if no domain is held out, or what the server sends is no model for somebody who never trained.
    """
    if data.whole is None or not plans[0].config.method.serves_newcomers:
        return None
    return _fleet(plans, data, [_newcomer(r, plan, data) for r, plan in enumerate(plans)], device)


def _newcomer(run: int, plan: Plan, data: Encoded) -> Client:
    assert data.whole is not None
    own, tests = data.whole.own[data.held_out], data.whole.test[data.held_out]
    rows = studies.held_out(plan, data).test
    return Client(
        run=run,
        index=NEWCOMER,
        seed=plan.seed,
        x=own.read[:0],
        y=own.y[:0],
        x_test=tests.read[rows],
        y_test=tests.y[rows],
    )


def _fleet(plans: Sequence[Plan], data: Encoded, clients: Sequence[Client], device: torch.device) -> Fleet:
    config, cohort = plans[0].config, Cohort.stack(clients, device)
    one = config.architecture(clients[0].index)
    network = one.model.build(one.encoder).to(device)
    runs = [client.run for client in cohort.clients]
    start = {
        run: config.method.first(
            first_parameters(
                network, one.encoder, data, studies.parts(plans[run], data), seed=plans[run].seed
            ),
            seed=plans[run].seed,
        )
        for run in sorted(set(runs))
    }
    params = {
        name: torch.from_numpy(np.stack([start[run][name] for run in runs])).to(device)
        for name in start[runs[0]]
    }
    return Fleet.start(
        network,
        cohort,
        params,
        training=config.method.training,
        method=config.method,
        rule=config.defense.local,
        precision=config.precision,
        kept=config.method.kept(cohort.y, num_classes=data.num_classes),
    )


def _clients(plans: Sequence[Plan], data: Encoded) -> list[Client]:
    tests: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]] = {}
    return [
        _client(r, m, plan.seed, split, data, tests)
        for r, plan in enumerate(plans)
        for m, split in enumerate(studies.parts(plan, data))
    ]


def _client(
    run: int,
    index: int,
    seed: int,
    split: Parts,
    data: Encoded,
    tests: dict[tuple[int, bytes], tuple[np.ndarray, np.ndarray]],
) -> Client:
    own, held_out = data.own[index], data.test[index]
    key = (id(held_out), split.test.tobytes())
    if key not in tests:
        tests[key] = (held_out.read[split.test], held_out.y[split.test])
    x_test, y_test = tests[key]
    return Client(
        run=run,
        index=index,
        seed=seed,
        x=own.read[split.members],
        y=own.y[split.members],
        x_test=x_test,
        y_test=y_test,
    )
