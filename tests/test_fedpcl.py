"""FedPCL against NumPy written record by record, and what its loss may use of the memory."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.defenses._distillation import ClippingRegularization
from privkit.defenses._local import AsPublished, LocalRule
from privkit.methods import _contrast
from privkit.methods._base import LocalTraining
from privkit.methods._contrast import Peers, contrast
from privkit.methods._down import Down
from privkit.methods.fedpcl import FedPcl
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.release import Prototypes, SumsAndCounts
from privkit.train.cohort import Client, Cohort
from privkit.train.local import Fleet
from tests import federation
from tests.federation import NETWORK, C, D, G


def reference_contrast(u, y, prototypes, present, tau) -> float:
    """Return the cross-entropy of one record over its cosines with one set of prototypes."""
    if not present[y]:
        return 0.0
    exponentials = {c: np.exp(federation.cosine(u, prototypes[c]) / tau) for c in np.flatnonzero(present)}
    return float(-np.log(exponentials[y] / sum(exponentials.values())))


def reference_loss(method: FedPcl, down: Down):
    """Return one client's loss as a function of its parameters, record by record, peer by peer."""

    def loss(p, g, records) -> float:
        run = int(down.run_G[g])
        got = {name: t[run].numpy() for name, t in down.shared.items()}
        total = 0.0
        for x, y, weight in zip(*(a[g].numpy() for a in (records.x, records.y, records.weight)), strict=True):
            u = federation.embedded(p, x[None])[0]
            mine = [
                reference_contrast(u, y, peer, got["present"], method.temperature)
                for peer in got["peers"][got["sent"]]
            ]
            to_peers = np.mean(mine) if method.peers == "mean" else np.sum(mine)
            to_average = reference_contrast(u, y, got["prototypes"], got["present"], method.temperature)
            total += weight * (to_average + to_peers)
        return float(total)

    return loss


METHODS = (FedPcl(), FedPcl(temperature=0.5, peers="sum"))


@pytest.fixture(params=METHODS, ids=["mean", "sum"])
def method(request) -> FedPcl:
    return request.param


@pytest.fixture
def down(method) -> Down:
    return federation.answers(method, federation.states(method))


def test_loss_and_gradient_of_each_client_are_the_reference(method, down):
    federation.assert_is_reference(method, down, reference_loss(method, down), federation.batch())


# ---------------------------------------------------------------------- the contrast with peers


def drawn(clients: int, records: int, classes: int, dim: int, *, peers: int) -> tuple:
    """Return embeddings, classes and peers of two runs, with an absent class, a class filled up, and filling."""
    rng = np.random.default_rng(0)
    present = np.ones((2, classes), dtype=bool)
    present[0, 1] = False
    sent = np.ones((2, peers), dtype=bool)
    sent[1, peers // 2 :] = False
    u, y = rng.standard_normal((clients, records, dim)), rng.integers(0, classes, (clients, records))
    vectors, run = rng.standard_normal((2, peers, classes, dim)), torch.arange(clients) % 2
    found = Peers(
        vectors_RMCd=torch.from_numpy(vectors),
        present_RC=torch.from_numpy(present),
        sent_RM=torch.from_numpy(sent),
        run_G=run,
    )
    return torch.from_numpy(u), torch.from_numpy(y), found


def by_autograd(u, y, peers: Peers, tau: float) -> torch.Tensor:
    """Return the losses with all cosines at once, and leave their gradient to torch."""
    own = peers.vectors_RMCd[peers.run_G]
    cosines = torch.einsum(
        "gbd,gmcd->gbmc", torch.nn.functional.normalize(u, dim=-1), torch.nn.functional.normalize(own, dim=-1)
    )
    present = peers.present_RC[peers.run_G]
    logits = (cosines / tau).masked_fill(~present[:, None, None], -torch.inf)
    chosen = logits.log_softmax(-1).gather(-1, y[..., None, None].expand(-1, -1, own.shape[1], 1)).squeeze(-1)
    chosen = chosen.masked_fill(~present.gather(1, y)[..., None], 0.0)
    return -(chosen * peers.sent_RM[peers.run_G].unsqueeze(1)).sum(-1)


@pytest.mark.parametrize("at_once", [1, 200, 2**20])
def test_contrast_in_portions_is_plain_autograd(monkeypatch, at_once):
    monkeypatch.setattr(_contrast, "_AT_ONCE", at_once)
    u, y, peers = drawn(7, 5, 4, 6, peers=9)
    outer = torch.rand(7, 5, dtype=torch.float64)
    one, other = u.clone().requires_grad_(True), u.clone().requires_grad_(True)
    found, wanted = contrast(one, y, peers, temperature=0.07), by_autograd(other, y, peers, 0.07)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    (slope,) = torch.autograd.grad((outer * found).sum(), one)
    (right,) = torch.autograd.grad((outer * wanted).sum(), other)
    torch.testing.assert_close(slope, right, rtol=1e-6, atol=1e-9)


def test_contrast_of_float32_is_near_plain_autograd():
    u, y, peers = drawn(6, 8, 10, 32, peers=20)
    one = u.float().requires_grad_(True)
    (slope,) = torch.autograd.grad(contrast(one, y, peers, temperature=0.07).sum(), one)
    other = u.clone().requires_grad_(True)
    (right,) = torch.autograd.grad(by_autograd(other, y, peers, 0.07).sum(), other)
    torch.testing.assert_close(slope.double(), right, rtol=1e-4, atol=1e-4 * right.abs().max().item())


def test_contrast_in_bfloat16_keeps_float32_embeddings():
    u, y, peers = drawn(6, 8, 10, 32, peers=20)
    one = u.float().requires_grad_(True)
    with torch.autocast("cpu", torch.bfloat16):
        found = contrast(one, y, peers, temperature=0.5)
    (slope,) = torch.autograd.grad(found.sum(), one)
    assert slope.dtype == torch.float32
    wanted = by_autograd(u, y, peers, 0.5)
    torch.testing.assert_close(found.double(), wanted, rtol=0.02, atol=0.2)


def test_nothing_present_is_no_loss_and_no_gradient():
    u, y, peers = drawn(4, 3, 3, 5, peers=2)
    empty = Peers(
        vectors_RMCd=torch.zeros_like(peers.vectors_RMCd),
        present_RC=torch.zeros_like(peers.present_RC),
        sent_RM=peers.sent_RM,
        run_G=peers.run_G,
    )
    live = u.requires_grad_(True)
    found = contrast(live, y, empty, temperature=0.07)
    assert not found.any()
    assert not torch.autograd.grad(found.sum(), live)[0].any()


def test_an_embedding_without_direction_has_a_small_gradient():
    u, y, peers = drawn(2, 3, 3, 5, peers=2)
    u[0, 0] = 0.0
    live = u.requires_grad_(True)
    (slope,) = torch.autograd.grad(contrast(live, y, peers, temperature=0.07).sum(), live)
    assert slope.isfinite().all()
    assert slope.abs().max() < 1e3


MEMORY = """
import resource, torch
from privkit.methods._base import LocalTraining
from privkit.methods._contrast import Peers, contrast

def step(clients):
    u, y = torch.randn(clients, 64, 32, requires_grad=True), torch.randint(0, 100, (clients, 64))
    yes = torch.ones(1, 100, dtype=torch.bool), torch.ones(1, clients, dtype=torch.bool)
    vectors, run = torch.randn(1, clients, 100, 32), torch.zeros(clients, dtype=torch.long)
    peers = Peers(vectors_RMCd=vectors, present_RC=yes[0], sent_RM=yes[1], run_G=run)
    contrast(u, y, peers, temperature=0.07).sum().backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

base = step(8)
print(step(40) - base, step(160) - base)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sizes are in KiB on Linux")
def test_memory_grows_at_most_linearly_with_the_number_of_clients():
    done = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True)
    few, many = (int(kib) / 1024 for kib in done.stdout.split())
    # all cosines of 160 clients would be 625 MiB, and autograd would keep several such tensors
    assert many < 160
    assert many < 4 * few + 60


def test_what_clients_receive_is_held_once_per_run(method, down):
    federation.loss_of(method, federation.params(), federation.batch(), down)
    assert down.shared["peers"].shape == (2, 3, C, D)
    assert down.each == {}
    assert "peers" not in down._spread


def test_a_server_may_tell_each_client_something_else(method, down):
    names = ("prototypes", "present", "peers", "sent")
    each = Down(each={name: down[name] for name in names}, shared={}, run_G=down.run_G)
    own, records = federation.params(), federation.batch()
    torch.testing.assert_close(
        federation.loss_of(method, own, records, each), federation.loss_of(method, own, records, down)
    )
    moved = {**each.each, "peers": each.each["peers"].clone()}
    moved["peers"][1] += 1.0
    other = Down(each=moved, shared=down.shared, run_G=down.run_G)
    changed = federation.loss_of(method, own, records, other) != federation.loss_of(
        method, own, records, down
    )
    assert changed.tolist() == [False, True, False, False, False]


# ---------------------------------------------------------------------- the server


@st.composite
def rounds(draw) -> list[dict[int, np.ndarray]]:
    held = draw(st.lists(st.lists(st.integers(0, C - 1), unique=True, min_size=1), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    return [{c: rng.standard_normal(D).astype(np.float32) for c in labels} for labels in held]


@given(rounds())
def test_server_averages_and_forwards_with_gaps_filled(messages):
    method = FedPcl()
    uploads = {m: federation.sent(vectors, counts=m + 1) for m, vectors in enumerate(messages)}
    got = method.shared(method.merge(method.start(dim=D, num_classes=C, seed=0), uploads))
    assert got["sent"].tolist() == [True] * len(messages)
    for c in range(C):
        holders = [vectors[c] for vectors in messages if c in vectors]
        assert got["present"][c] == bool(holders)
        average = np.mean(holders, axis=0) if holders else np.zeros(D)
        np.testing.assert_allclose(got["prototypes"][c], average, rtol=1e-5, atol=1e-6)
        for m, vectors in enumerate(messages):
            np.testing.assert_allclose(got["peers"][m, c], vectors.get(c, average), rtol=1e-5, atol=1e-6)


def test_several_prototypes_of_a_class_are_averaged():
    method = FedPcl()
    sent = Prototypes(vectors=np.array([[1.0, 0.0], [0.0, 3.0]], dtype=np.float32), labels=np.array([1, 1]))
    server = method.merge(method.start(dim=2, num_classes=2, seed=0), {0: sent})
    assert server["peers"].tolist() == [[[0.0, 0.0], [0.5, 1.5]]]


def test_noisy_sums_are_divided_by_noisy_totals():
    method = FedPcl()
    uploads = {
        m: SumsAndCounts(
            vectors=np.array([[4.0, 2.0]], dtype=np.float32),
            labels=np.array([0]),
            totals=np.array([total], dtype=np.float32),
        )
        for m, total in enumerate((2.0, -3.0))
    }
    server = method.merge(method.start(dim=2, num_classes=1, seed=0), uploads)
    assert server["peers"].tolist() == [[[2.0, 1.0]], [[4.0, 2.0]]]
    assert server["prototypes"].tolist() == [[4.0, 2.0]]  # 8 / max(2 - 3, 2 clients)


# ---------------------------------------------------------------------- prediction


def fleet(x: np.ndarray, y: np.ndarray, model: PersonalModel, rule: LocalRule) -> Fleet:
    """Return one client that trains and is tested on the same records."""
    network = Network(model)
    client = Client(run=0, index=0, seed=0, x=x, y=y, x_test=x, y_test=y)
    start = network.start(dim=x.shape[1], num_classes=C, seed=0)
    params = {name: torch.from_numpy(a)[None] for name, a in start.items()}
    return Fleet.start(
        network, Cohort.stack([client], torch.device("cpu")), params, training=LocalTraining(), rule=rule
    )


def answered(method: FedPcl, server) -> Down:
    shared = {name: torch.from_numpy(a)[None] for name, a in method.shared(server).items()}
    return Down(each={}, shared=shared, run_G=torch.tensor([0]))


def test_perfect_features_of_some_classes_are_all_classified_right():
    x, y = np.eye(D, dtype=np.float32)[[2, 2, 3, 3, 3]], np.array([2, 2, 3, 3, 3])
    method = FedPcl()
    server = method.merge(
        method.start(dim=D, num_classes=C, seed=0), {0: federation.sent({2: x[0], 3: x[2]})}
    )
    one = fleet(x, y, PersonalModel(), AsPublished())
    assert one.accuracy(method, answered(method, server), num_classes=C) == [1.0]


def test_prediction_is_the_nearest_mean_of_ones_own_records_by_cosine(method, down):
    own, rng = federation.params(), np.random.default_rng(5)
    z, y = rng.standard_normal((G, 7, D)), rng.integers(1, C, (G, 7))  # nobody holds class 0
    y[2, 3:] = -1
    x = rng.standard_normal((G, 4, D))
    kept = method.recall(torch.from_numpy(z), torch.from_numpy(y), num_classes=C)
    found = method.logits(NETWORK, own, torch.from_numpy(x), down, kept).argmax(-1)
    for g in range(G):
        means = {c: z[g, y[g] == c].mean(0) for c in range(C) if (y[g] == c).any()}
        for i, u in enumerate(federation.embedded(federation.of(g, own), x[g])):
            wanted = max(means, key=lambda c: federation.cosine(u, means[c]))
            assert found[g, i] == wanted


def test_prediction_looks_at_no_noisy_prototype(method, down):
    own, x = federation.params(), federation.batch().x
    kept = method.recall(x, federation.batch().y, num_classes=C)
    noise = {n: t + 9.0 if t.is_floating_point() else t for n, t in down.shared.items()}
    other = Down(each={}, shared=noise, run_G=down.run_G)
    assert torch.equal(
        method.logits(NETWORK, own, x, down, kept), method.logits(NETWORK, own, x, other, kept)
    )


# ---------------------------------------------------------------------- the head


def test_the_head_is_not_trained(method, down):
    slopes = federation.gradients(method, federation.params(), federation.batch(), down)
    assert not slopes["head.weight"].any()
    assert not slopes["head.bias"].any()
    assert slopes["adapter.up"].abs().amax((1, 2)).min() > 0


@pytest.mark.parametrize(("weight", "moves"), [(0.0, False), (1.0, True)])
def test_with_distillation_the_head_is_trained_by_its_teacher_alone(weight, moves):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, D)).astype(np.float32), np.arange(12) % C
    method = FedPcl.model_validate({"training": {"weight_decay": 0.0}})
    one = fleet(x, y, PersonalModel(adapter=2), ClippingRegularization(weight=weight))
    server = method.merge(
        method.start(dim=D, num_classes=C, seed=0), {0: federation.sent({c: x[c] for c in range(C)})}
    )
    before = {name: p.clone() for name, p in one.params.items()}
    one.train_round(0, method, answered(method, server))
    assert torch.equal(one.params["head.weight"], before["head.weight"]) is not moves
    assert not torch.equal(one.params["adapter.up"], before["adapter.up"])


def test_without_an_adapter_nothing_is_trained():
    x, y = np.eye(D, dtype=np.float32)[:C], np.arange(C)
    method, one = FedPcl(), fleet(x, y, PersonalModel(), AsPublished())
    before = {name: p.clone() for name, p in one.params.items()}
    message = federation.sent({c: x[c] for c in range(C)})
    one.train_round(
        0, method, answered(method, method.merge(method.start(dim=D, num_classes=C, seed=0), {0: message}))
    )
    assert all(torch.equal(p, before[name]) for name, p in one.params.items())
