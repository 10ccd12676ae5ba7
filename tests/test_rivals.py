"""FedAvg, FedProx, FedRep, Ditto, FedALA, FedPAC, FedGH: each against a loop over single clients, and their laws."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.federation import Engine, Federation, farthest
from privkit import plug
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod, LocalTraining
from privkit.methods.fedala import MIX, SETTLED
from privkit.noise import Purpose, keyed
from privkit.personal import PersonalModel
from privkit.train.cohort import Client

SIZES, DIM, CLASSES = [9, 7, 4], 6, 3
MODEL = PersonalModel(adapter=3)
SGD = LocalTraining(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.1, weight_decay=0.0)
ADAMW = LocalTraining(epochs=2, batch_size=4, learning_rate=0.05)
BASE, HEAD = ("adapter.down", "adapter.up"), ("head.weight", "head.bias")
Params = dict[str, Tensor]
"""Parameters of one client, float64."""


def built(name: str, training: LocalTraining = SGD, **settings: Any) -> AbstractMethod:
    found = plug.build("privkit.methods", {"name": name, "training": training.model_dump(), **settings})
    assert isinstance(found, AbstractMethod)
    return found


def federation(sizes: list[int] | None = None) -> Federation:
    return Federation.of(
        SIZES if sizes is None else sizes, dim=DIM, num_classes=CLASSES, model=MODEL
    ).double()


def engine(method: AbstractMethod, given: Federation | None = None, *, rounds: int = 3) -> Engine:
    found = Engine(federation() if given is None else given, method)
    for _ in range(rounds):
        found.round()
    return found


def shown(found: Engine) -> list[dict[str, np.ndarray]]:
    """Return the plain parameters of every client: of what a method keeps besides, nothing."""
    return [{n: p for n, p in mine.items() if n in (*BASE, *HEAD)} for mine in found.named()]


# ---------------------------------------------------------------------- one client, one record after the other


def logits_of(p: Params, x: Tensor) -> Tensor:
    return embedded(p, x) @ p["head.weight"] + p["head.bias"]


def embedded(p: Params, x: Tensor) -> Tensor:
    return x + (x @ p["adapter.down"]).relu() @ p["adapter.up"]


def batches(client: Client, round: int, *, epochs: int, skipped: int = 0) -> list[np.ndarray]:
    """Return the mini-batches of a client, as the engine draws them."""
    rng, found = keyed(0, Purpose.BATCHES, round=round, client=client.index), []
    for epoch in range(skipped + epochs):
        order = rng.permutation(len(client.y))
        found += [order[at : at + 4] for at in range(0, len(order), 4)] if epoch >= skipped else []
    return found


def descend(
    p: Params,
    client: Client,
    drawn: list[np.ndarray],
    trained: tuple[str, ...] = (*BASE, *HEAD),
    more: Callable[[Params, Tensor, Tensor], Tensor] | None = None,
) -> Params:
    """Return parameters after plain SGD on cross-entropy, and on something more."""
    x, y = torch.from_numpy(client.x), torch.from_numpy(client.y)
    for rows in drawn:
        live = {n: t.clone().requires_grad_(n in trained) for n, t in p.items()}
        loss = cross_entropy(logits_of(live, x[rows]), y[rows])
        if more is not None:
            loss = loss + more(live, x[rows], y[rows])
        slopes = torch.autograd.grad(loss, [live[n] for n in trained])
        p = p | {n: p[n] - 0.1 * s for n, s in zip(trained, slopes, strict=True)}
    return p


def half_square(p: Params, to: Mapping[str, Tensor]) -> Tensor:
    found = [((p[n] - q) ** 2).sum() for n, q in to.items()]
    return 0.5 * torch.stack(found).sum()


def mean(every: list[Params], names: tuple[str, ...]) -> Params:
    """Return the server's mean, which it keeps in float32."""
    return {n: torch.stack([p[n] for p in every]).mean(0).float().double() for n in names}


def begun(given: Federation) -> list[Params]:
    return [{n: torch.from_numpy(a.copy()) for n, a in given.start.items()} for _ in given.clients]


def assert_close(found: Engine, wanted: list[Params]) -> None:
    for mine, other in zip(found.named(), wanted, strict=True):
        for name, p in other.items():
            np.testing.assert_allclose(mine[name], p.numpy(), rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("mu", [0.0, 0.7])
def test_fedavg_and_fedprox_are_a_loop_over_clients(mu):
    given = federation()
    every = begun(given)
    for round in range(3):
        w = mean(every, (*BASE, *HEAD))

        def pull(p: Params, x: Tensor, y: Tensor, w: Params = w) -> Tensor:
            return mu * half_square(p, w)

        every = [descend(dict(w), c, batches(c, round, epochs=2), more=pull) for c in given.clients]
    method = built("fedprox", mu=mu) if mu else built("fedavg")
    assert_close(engine(method, given), every)


def test_fedrep_is_a_loop_over_clients():
    given = federation()
    every = begun(given)
    for round in range(3):
        base = mean(every, BASE)
        every = [p | base for p in every]
        every = [
            descend(p, c, batches(c, round, epochs=2), HEAD)
            for p, c in zip(every, given.clients, strict=True)
        ]
        every = [
            descend(p, c, batches(c, round, epochs=2, skipped=2), BASE)
            for p, c in zip(every, given.clients, strict=True)
        ]
    assert_close(engine(built("fedrep", head_epochs=2), given), every)


def test_ditto_is_a_loop_over_clients():
    given = federation()
    every, own = begun(given), begun(given)
    for round in range(3):
        w = mean(every, (*BASE, *HEAD))

        def pull(p: Params, x: Tensor, y: Tensor, w: Params = w) -> Tensor:
            return 0.8 * half_square(p, w)

        own = [
            descend(v, c, batches(c, round, epochs=1), more=pull)
            for v, c in zip(own, given.clients, strict=True)
        ]
        every = [descend(dict(w), c, batches(c, round, epochs=2)) for c in given.clients]
    wanted = [w | {f"personal.{n}": t for n, t in v.items()} for w, v in zip(every, own, strict=True)]
    assert_close(engine(built("ditto", pull=0.8), given), wanted)


def mixed(
    p: Params, w: Params, mix: Params, client: Client, round: int, first: bool
) -> tuple[Params, Params]:
    """Return what FedALA begins a round with, and its mixture: as PFLlib writes it, for one client."""
    x, y = torch.from_numpy(client.x), torch.from_numpy(client.y)
    rng = keyed(0, Purpose.ADAPTATION, round=round, client=client.index)
    chosen = rng.permutation(len(y))[: max(1, int(0.8 * len(y)))]
    now = dict(w) | {n: p[n] + (w[n] - p[n]) * mix[n] for n in HEAD}
    losses, loss = list[float](), torch.zeros(())
    while True:
        for at in range(0, len(chosen), 4):
            rows = chosen[at : at + 4]
            live = {n: t.clone().requires_grad_(n in HEAD) for n, t in now.items()}
            loss = cross_entropy(logits_of(live, x[rows]), y[rows])
            slopes = torch.autograd.grad(loss, [live[n] for n in HEAD])
            mix = {n: (mix[n] - s * (w[n] - p[n])).clamp(0, 1) for n, s in zip(HEAD, slopes, strict=True)}
            now = now | {n: p[n] + (w[n] - p[n]) * mix[n] for n in HEAD}
        losses.append(loss.item())
        if not first or (len(losses) > 10 and np.std(losses[-10:]) < 0.1):
            return now, mix


def test_fedala_is_a_loop_over_clients():
    given = federation()
    every = begun(given)
    mixes = [{n: torch.ones_like(p[n]) for n in HEAD} for p in every]
    for round in range(4):
        w = mean(every, (*BASE, *HEAD))
        begin = [dict(w) for _ in every]
        if round:  # at first, what arrives is what everybody has
            both = [
                mixed(p, w, mix, c, round, first=round == 1)
                for p, mix, c in zip(every, mixes, given.clients, strict=True)
            ]
            begin, mixes = [b for b, _ in both], [m for _, m in both]
        every = [
            descend(b, c, batches(c, round, epochs=2)) for b, c in zip(begin, given.clients, strict=True)
        ]
    found = engine(built("fedala"), given, rounds=4)
    wanted = [p | {f"{MIX}{n}": t for n, t in m.items()} for p, m in zip(every, mixes, strict=True)]
    assert_close(found, wanted)
    assert any((m["head.weight"] < 1).any() for m in mixes)
    assert (found.fleet.params[SETTLED] == 1).all()


def test_fedpac_is_a_loop_over_clients():
    given = federation()
    every = begun(given)
    for round in range(3):
        sent = [statistics(p, c) for p, c in zip(every, given.clients, strict=True)]
        base, protos = mean(every, BASE), prototypes(sent)
        heads = [blended(weights_of(sent, i), every) for i in range(len(every))]

        def align(p: Params, x: Tensor, y: Tensor, protos: dict[int, Tensor] = protos) -> Tensor:
            z = embedded(p, x)
            return torch.stack([((z[i] - protos[int(c)]) ** 2).mean() for i, c in enumerate(y)]).mean()

        every = [base | h for h in heads]
        every = [
            descend(p, c, batches(c, round, epochs=1), HEAD)
            for p, c in zip(every, given.clients, strict=True)
        ]
        every = [
            descend(p, c, batches(c, round, epochs=2, skipped=1), BASE, align)
            for p, c in zip(every, given.clients, strict=True)
        ]
    found = engine(built("fedpac"), given)
    for mine, other in zip(found.named(), every, strict=True):
        for name, p in other.items():
            np.testing.assert_allclose(mine[name], p.numpy(), rtol=1e-4, atol=2e-5, err_msg=name)


def blended(a: np.ndarray, every: list[Params]) -> Params:
    """Return a client's mixed head, which the server keeps in float32."""
    parts = torch.from_numpy(a)
    return {n: torch.tensordot(parts, torch.stack([p[n] for p in every]), 1).float().double() for n in HEAD}


def statistics(p: Params, client: Client) -> dict[str, Any]:
    """Return what FedPAC's own code computes of a client's embeddings, class by class."""
    z, y = embedded(p, torch.from_numpy(client.x)).numpy(), client.y
    n, h, v, means = len(y), np.zeros((CLASSES, DIM)), 0.0, {}
    for k in np.unique(y).tolist():
        mine = z[y == k]
        share, mu = len(mine) / n, mine.mean(0)
        means[k], h[k] = mu, share * mu
        v += share * np.trace(mine.T @ mine / len(mine)) - share**2 * (mu * mu).sum()
    return {"h": h, "v": v / n, "means": means}


def prototypes(sent: list[dict[str, Any]]) -> dict[int, Tensor]:
    found = {k: np.mean([s["means"][k] for s in sent if k in s["means"]], axis=0) for k in range(CLASSES)}
    return {k: torch.from_numpy(mu.astype(np.float32).astype(np.float64)) for k, mu in found.items()}


def weights_of(sent: list[dict[str, Any]], own: int) -> np.ndarray:
    """Return a client's mixing weights by another solver: sequential quadratic programming."""
    from scipy.optimize import minimize

    count = len(sent)
    p = np.diag([s["v"] for s in sent]).astype(float)
    for j in range(count):
        for k in range(count):
            p[j, k] += ((sent[own]["h"] - sent[j]["h"]) * (sent[own]["h"] - sent[k]["h"])).sum()
    done = minimize(
        lambda a: a @ p @ a,
        np.full(count, 1 / count),
        jac=lambda a: 2 * p @ a,
        bounds=[(0, 1)] * count,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(count)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    kept = np.where(done.x < 1e-3, 0, done.x)
    return kept / kept.sum()


def test_fedgh_is_a_loop_over_clients():
    given = federation()
    method = built("fedgh", server={"epochs": 3, "batch_size": 2, "learning_rate": 0.5})
    every = begun(given)
    head = {n: every[0][n].float() for n in HEAD}
    for round in range(3):
        rows = [(m, k) for c in given.clients for k, m in statistics(every[c.index], c)["means"].items()]
        p = torch.tensor(np.array([m for m, _ in rows]), dtype=torch.float32)
        y = torch.tensor([k for _, k in rows])
        rng = keyed(0, Purpose.SERVER, round=round + 1)
        for _ in range(3):
            order = rng.permutation(len(y))
            for at in range(0, len(y), 2):
                some = order[at : at + 2]
                live = {n: t.clone().requires_grad_(True) for n, t in head.items()}
                loss = cross_entropy(p[some] @ live["head.weight"] + live["head.bias"], y[some])
                slopes = torch.autograd.grad(loss, list(live.values()))
                head = {n: t - 0.5 * s for (n, t), s in zip(head.items(), slopes, strict=True)}
        every = [
            descend(p_ | {n: t.double() for n, t in head.items()}, c, batches(c, round, epochs=2))
            for p_, c in zip(every, given.clients, strict=True)
        ]
    found = engine(method, given)
    for mine, other in zip(found.named(), every, strict=True):
        for name, t in other.items():
            np.testing.assert_allclose(mine[name], t.numpy(), rtol=1e-4, atol=2e-5, err_msg=name)


# ---------------------------------------------------------------------- laws


@pytest.mark.parametrize("training", [SGD, ADAMW], ids=["sgd", "adamw"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("fedprox", {"mu": 0.0}), ("fedavg", {})),
        (("fedala", {"rate": 0.0}), ("fedavg", {})),  # its mixture then stays at ones
        (("ditto", {"pull": 5.0}), ("fedavg", {})),  # of the global model
        (("fedavg_head", {"adapters": True}), ("fedavg", {})),
    ],
    ids=["fedprox without a pull", "fedala of ones", "ditto's global model", "head and adapter"],
)
def test_special_cases_are_fedavg(one, other, training):
    found, wanted = (shown(engine(built(name, training, **s))) for name, s in (one, other))
    assert farthest(found, wanted) < 1e-9


@pytest.mark.parametrize("training", [SGD, ADAMW], ids=["sgd", "adamw"])
def test_ditto_without_a_pull_is_local_training(training):
    found = engine(built("ditto", training, pull=0.0, personal_epochs=2)).named()
    personal = [{n: mine[f"personal.{n}"] for n in (*BASE, *HEAD)} for mine in found]
    assert farthest(personal, shown(engine(built("local_only", training)))) < 1e-12


def test_ditto_with_a_strong_pull_stays_at_what_arrived():
    slow = SGD.model_copy(update={"learning_rate": 1e-3})
    found = engine(built("ditto", slow, pull=500.0)).named()
    w = {n: np.mean([mine[n] for mine in found], axis=0) for n in (*BASE, *HEAD)}
    for mine in found:
        assert max(np.abs(mine[f"personal.{n}"] - w[n]).max() for n in w) < 5e-3


def test_fedrep_without_head_epochs_trains_the_base_under_the_head_that_all_began_with():
    found = engine(built("fedrep", head_epochs=0))
    fixed = engine(built("fedrep", order="base_only"))
    assert farthest(shown(found), shown(fixed)) == 0.0
    for mine in found.named():
        assert all(np.array_equal(mine[n], found.given.start[n]) for n in HEAD)


def test_fedrep_of_everything_together_is_fedper():
    given = federation()
    every = begun(given)
    for round in range(2):
        base = mean(every, BASE)
        every = [
            descend(p | base, c, batches(c, round, epochs=2))
            for p, c in zip(every, given.clients, strict=True)
        ]
    assert_close(engine(built("fedrep", order="together"), given, rounds=2), every)


NAMES = ["ditto", "fedala", "fedavg", "fedgh", "fedpac", "fedprox", "fedrep"]


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_of_clients_change_nothing_but_the_order(name):
    """Batches are keyed by a client's number, so every client makes one batch of all of its records here."""
    from dataclasses import replace

    whole = SGD.model_copy(update={"batch_size": 16})
    settings = {"server": {"batch_size": 99, "epochs": 2}} if name == "fedgh" else {}
    settings |= {"share": 1.0} if name == "fedala" else {}
    given = federation()
    turned = replace(given, clients=tuple(replace(c, index=2 - c.index) for c in given.clients))
    one = engine(built(name, whole, **settings), given).named()
    other = engine(built(name, whole, **settings), turned).named()
    for mine, same in zip(one, reversed(other), strict=True):
        for n, p in mine.items():
            np.testing.assert_allclose(p, same[n], rtol=1e-4, atol=1e-5, err_msg=n)


@pytest.mark.parametrize("name", ["fedrep", "fedpac"])
def test_a_model_without_a_map_has_no_base_to_average(name):
    with pytest.raises(
        ValueError, match=f"{name} averages the map in front of the head, and the model has none"
    ):
        built(name).refuse_model(PersonalModel())
    built(name).refuse_model(PersonalModel(adapter=2))


@pytest.mark.parametrize("model", [PersonalModel(hidden=(4,)), PersonalModel(temperature=10.0)])
def test_fedgh_trains_a_head_of_one_layer_and_no_other(model):
    with pytest.raises(ValueError, match=r"leave out model\.hidden and model\.temperature"):
        built("fedgh").refuse_model(model)


def test_a_configuration_is_refused_where_its_method_cannot_be(tmp_path):
    from privkit.config import RunConfig

    settings = {"data": "digits", "encoder": "usps_cnn", "method": "fedrep", "defense": "none", "rounds": 1}
    with pytest.raises(InputError, match=r"set model\.adapter or model\.transform, or take method fedavg"):
        RunConfig.from_settings(settings, where="here")
