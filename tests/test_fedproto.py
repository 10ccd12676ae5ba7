"""FedProto and its control against twenty lines of NumPy."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.batch import Batch
from privkit.methods._base import AbstractMethod
from privkit.methods._down import Down
from privkit.methods.fedproto import FedProto
from privkit.methods.local_only import LocalOnly
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Prototypes

G, B, D, C = 3, 5, 4, 6  # clients, records, width, classes


def cross_entropy(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.log(np.exp(logits).sum(1)) - logits[np.arange(len(y)), y]


def embedded(params: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    return x + np.maximum(x @ params["adapter.down"], 0) @ params["adapter.up"]


def reference_loss(params, x, y, weight, prototypes, present, pull) -> float:
    """Return one client's loss, record by record."""
    u = embedded(params, x)
    losses = cross_entropy(u @ params["head.weight"] + params["head.bias"], y)
    for i, label in enumerate(y):
        if present[label]:
            losses[i] += pull * np.mean((u[i] - prototypes[label]) ** 2)
    return float(weight @ losses)


def reference_merge(uploads: list[dict[int, np.ndarray]]) -> dict[int, np.ndarray]:
    """Return the plain mean of each class over the clients that sent it."""
    labels = {label for sent in uploads for label in sent}
    return {c: np.mean([sent[c] for sent in uploads if c in sent], axis=0) for c in labels}


@pytest.fixture
def network() -> Network:
    return Network(PersonalModel(adapter=2))


@pytest.fixture
def params() -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    shapes = {
        "adapter.down": (G, D, 2),
        "adapter.up": (G, 2, D),
        "head.weight": (G, D, C),
        "head.bias": (G, C),
    }
    return {name: torch.from_numpy(rng.standard_normal(shape)) for name, shape in shapes.items()}


@pytest.fixture
def batch() -> Batch:
    rng = np.random.default_rng(1)
    weight = torch.full((G, B), 1 / B, dtype=torch.float64)
    weight[2] = torch.tensor([0.5, 0.5, 0.0, 0.0, 0.0])
    x, y = rng.standard_normal((G, B, D)), rng.integers(0, C, (G, B))
    y[0] = [0, 0, 1, 5, 5]
    return Batch(x=torch.from_numpy(x), y=torch.from_numpy(y), weight=weight)


@pytest.fixture
def answers() -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(2)
    present = np.ones((G, C), dtype=bool)
    present[:, 5] = False
    present[1] = False
    return {
        "prototypes": torch.from_numpy(rng.standard_normal((G, C, D))),
        "present": torch.from_numpy(present),
    }


@pytest.fixture
def down(answers) -> Down:
    return got(answers)


def got(answers: dict[str, torch.Tensor]) -> Down:
    """Return answers that differ by client, as each got them."""
    return Down(each=answers, shared={}, run_G=torch.zeros(G, dtype=torch.int64))


def of(client: int, named: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: t[client].numpy() for name, t in named.items()}


def loss_of(
    method: AbstractMethod,
    network: Network,
    params: dict[str, torch.Tensor],
    batch: Batch,
    down: Down,
) -> torch.Tensor:
    return method.loss(network, params, network.embed(params, batch.x), batch, down)


@pytest.mark.parametrize("pull", [0.0, 0.1, 7.0])
def test_loss_of_each_client_is_the_reference(network, params, batch, down, answers, pull):
    found = loss_of(FedProto(pull=pull), network, params, batch, down)
    wanted = [
        reference_loss(
            of(g, params),
            batch.x[g].numpy(),
            batch.y[g].numpy(),
            batch.weight[g].numpy(),
            **of(g, answers),
            pull=pull,
        )
        for g in range(G)
    ]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


def test_loss_of_local_only_is_the_cross_entropy(network, params, batch):
    found = loss_of(LocalOnly(), network, params, batch, got({}))
    u = [embedded(of(g, params), batch.x[g].numpy()) for g in range(G)]
    logits = [u[g] @ params["head.weight"][g].numpy() + params["head.bias"][g].numpy() for g in range(G)]
    wanted = [batch.weight[g].numpy() @ cross_entropy(logits[g], batch.y[g].numpy()) for g in range(G)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("method", [FedProto(pull=3.0), LocalOnly()])
def test_gradient_of_the_summed_loss_is_that_of_each_client_alone(method, network, params, batch, down):
    live = {name: p.clone().requires_grad_(True) for name, p in params.items()}
    together = torch.autograd.grad(loss_of(method, network, live, batch, down).sum(), list(live.values()))
    for g in range(G):
        own = {name: p[g : g + 1].clone().requires_grad_(True) for name, p in params.items()}
        mine = Batch(batch.x[g : g + 1], batch.y[g : g + 1], batch.weight[g : g + 1])
        loss = loss_of(method, network, own, mine, down.part(slice(g, g + 1)))
        alone = torch.autograd.grad(loss.sum(), list(own.values()))
        for part, whole in zip(alone, together, strict=True):
            torch.testing.assert_close(part[0], whole[g], rtol=1e-12, atol=1e-14)
            assert part.abs().max() > 0


def test_an_empty_slot_has_no_influence(network, params, batch, down):
    moved = batch.x.clone()
    moved[2, 2:] += 50.0
    other = Batch(moved, batch.y, batch.weight)
    method = FedProto(pull=1.0)
    assert torch.equal(
        loss_of(method, network, params, batch, down)[2], loss_of(method, network, params, other, down)[2]
    )


def test_a_class_that_nobody_holds_pulls_nothing(network, params, batch, answers):
    far = {**answers, "prototypes": answers["prototypes"].clone()}
    far["prototypes"][:, 5] = 1e6
    far["prototypes"][1] = 1e6
    method = FedProto(pull=1.0)
    assert torch.equal(
        loss_of(method, network, params, batch, got(answers)),
        loss_of(method, network, params, batch, got(far)),
    )


@st.composite
def rounds(draw) -> list[dict[int, np.ndarray]]:
    """Draw what some clients send: each some of the classes, in some order."""
    held = draw(st.lists(st.lists(st.integers(0, C - 1), unique=True, min_size=1), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    return [{c: rng.standard_normal(D).astype(np.float32) for c in labels} for labels in held]


def sent(vectors: dict[int, np.ndarray], counts: int = 1) -> Prototypes:
    return Prototypes(
        vectors=np.array(list(vectors.values())),
        labels=np.array(list(vectors)),
        counts=np.full(len(vectors), counts),
    )


@given(rounds())
def test_server_takes_the_plain_mean_over_the_clients_that_hold_a_class(uploads):
    method = FedProto()
    start = method.start(dim=D, num_classes=C, seed=0)
    server = method.merge(start, {m: sent(vectors, counts=m + 1) for m, vectors in enumerate(uploads)})
    got, wanted = method.shared(server), reference_merge(uploads)
    assert set(np.flatnonzero(got["present"])) == set(wanted)
    for label, vector in wanted.items():
        np.testing.assert_allclose(got["prototypes"][label], vector, rtol=1e-5, atol=1e-6)
    assert got["prototypes"].dtype == np.float32


@given(rounds(), st.randoms())
def test_server_does_not_depend_on_the_order_of_its_clients(uploads, random):
    method = FedProto()
    start = method.start(dim=D, num_classes=C, seed=0)
    messages = [(m, sent(vectors)) for m, vectors in enumerate(uploads)]
    one = method.merge(start, dict(messages))
    random.shuffle(messages)
    other = method.merge(start, dict(messages))
    np.testing.assert_allclose(one["prototypes"], other["prototypes"], rtol=1e-6, atol=1e-7)
    assert np.array_equal(one["holders"], other["holders"])


def test_a_round_replaces_what_the_server_knew():
    method = FedProto()
    before = method.merge(
        method.start(dim=D, num_classes=C, seed=0), {0: sent({0: np.ones(D), 1: np.ones(D)})}
    )
    after = method.shared(method.merge(before, {0: sent({1: 2 * np.ones(D)})}))
    assert after["present"].tolist() == [False, True, False, False, False, False]
    assert after["prototypes"][1].tolist() == [2.0] * D


def test_prediction_by_prototype_is_the_nearest_one_that_is_present(network, params, batch, down):
    found = FedProto(predict="prototype").logits(network, params, batch.x, down, {}).argmax(-1)
    for g in (0, 2):
        prototypes, present = down["prototypes"][g].numpy(), down["present"][g].numpy()
        distance = ((embedded(of(g, params), batch.x[g].numpy())[:, None] - prototypes) ** 2).sum(-1)
        distance[:, ~present] = np.inf
        assert found[g].tolist() == distance.argmin(1).tolist()


def test_prediction_by_prototype_is_never_an_absent_class(network, params, batch, answers):
    tempting = {**answers, "prototypes": answers["prototypes"].clone()}
    tempting["prototypes"][0, 5] = torch.from_numpy(embedded(of(0, params), batch.x[0].numpy())[0])
    tempting["present"] = torch.ones(G, C, dtype=torch.bool)
    method = FedProto(predict="prototype")
    assert method.logits(network, params, batch.x, got(tempting), {}).argmax(-1)[0, 0] == 5
    tempting["present"][:, 5] = False
    assert (method.logits(network, params, batch.x, got(tempting), {}).argmax(-1) != 5).all()


def test_prediction_by_head_does_not_look_at_prototypes(network, params, batch, down):
    u = [embedded(of(g, params), batch.x[g].numpy()) for g in range(G)]
    wanted = [
        (u[g] @ params["head.weight"][g].numpy() + params["head.bias"][g].numpy()).argmax(1) for g in range(G)
    ]
    found = FedProto().logits(network, params, batch.x, down, {}).argmax(-1)
    assert np.array_equal(found.numpy(), wanted)
    assert np.array_equal(
        LocalOnly().logits(network, params, batch.x, got({}), {}).argmax(-1).numpy(), wanted
    )


@pytest.mark.parametrize("adapter", [None, 3])
def test_an_untrained_model_embeds_a_record_as_itself(adapter):
    fresh = Network(PersonalModel(adapter=adapter))
    start = {n: torch.from_numpy(p)[None] for n, p in fresh.start(dim=D, num_classes=C, seed=1).items()}
    x = torch.arange(B * D, dtype=torch.float32).view(1, B, D) - 7
    assert torch.equal(fresh.embed(start, x), x)
    assert fresh.logits(start, x).shape == (1, B, C)
