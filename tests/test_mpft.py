"""MPFT against NumPy with its gradient written by hand: the server's training, and what clients learn from it."""

import numpy as np
import pytest
import torch

from accountant.contract import DependsOn
from privkit.errors import InputError
from privkit.methods._base import AbstractMethod
from privkit.methods._down import Down
from privkit.methods.local_only import LocalOnly
from privkit.methods.mpft import Mpft
from privkit.network import Network
from privkit.noise import Purpose, keyed
from privkit.personal import PersonalModel
from privkit.prototypes.mean import Mean
from privkit.release import ByClass, Prototypes
from tests import federation
from tests.federation import NETWORK, B, C, D, G

TEACHER = ("adapter.down", "adapter.up", "head.weight", "head.bias")


def mpft(**settings) -> Mpft:
    return Mpft.model_validate({"prototypes": "mean", "reduction": 4, **settings})


def taught(state) -> dict[str, np.ndarray]:
    return {n.removeprefix("teacher."): a for n, a in state.items() if n.startswith("teacher.")}


# ---------------------------------------------------------------------- the server


def reference_step(net, speed, p, y, *, rate: float, momentum: float, decay: float, frozen=()):
    """Return teacher and momentum after one step of SGD on a batch, the gradient by hand; without dropout."""
    down, up, w, b = (net[name] for name in TEACHER)
    h = np.maximum(p @ down, 0.0)
    u = p + h @ up
    of_logits = (np.exp(federation.log_softmax(u @ w + b)) - np.eye(len(b))[y]) / len(p)
    of_u = of_logits @ w.T
    of_h = (of_u @ up.T) * (h > 0)
    slopes = dict(zip(TEACHER, (p.T @ of_h, h.T @ of_u, u.T @ of_logits, of_logits.sum(0)), strict=True))
    after, faster = dict(net), dict(speed)
    for name in TEACHER:
        if name not in frozen:
            faster[name] = momentum * speed[name] + slopes[name] + decay * net[name]
            after[name] = net[name] - rate * faster[name]
    return after, faster


def reference_server(method: Mpft, state, uploads, *, seed: int, round: int, frozen=()):
    """Return the teacher after one round of the server's training."""
    p = np.concatenate([uploads[m].prototypes().vectors for m in sorted(uploads)]).astype(np.float64)
    y = np.concatenate([uploads[m].labels for m in sorted(uploads)])
    net = {name: a.astype(np.float64) for name, a in taught(state).items()}
    speed, how = {name: np.zeros_like(a) for name, a in net.items()}, method.server
    rng = keyed(seed, Purpose.SERVER, round=round)
    for _ in range(how.epochs):
        order = rng.permutation(len(p))
        for at in range(0, len(p), how.batch_size):
            rows = order[at : at + how.batch_size]
            rates = {"rate": how.learning_rate, "momentum": how.momentum, "decay": how.weight_decay}
            net, speed = reference_step(net, speed, p[rows], y[rows], **rates, frozen=frozen)
    return net


@pytest.mark.parametrize("size", [64, 4])
def test_server_training_is_the_reference_round_after_round(size):
    method = mpft(dropout=0.0, server={"batch_size": size, "learning_rate": 0.1, "weight_decay": 0.01})
    state = method.start(dim=D, num_classes=C, seed=7)
    for round in (1, 2):
        uploads = federation.drawn({3: (0, 1, 2), 0: (1, 3)}, seed=round)
        wanted = reference_server(method, state, uploads, seed=7, round=round)
        state = method.merge(state, uploads)
        assert state["round"] == round
        for name in TEACHER:
            np.testing.assert_allclose(taught(state)[name], wanted[name], rtol=1e-3, atol=1e-5, err_msg=name)


def test_published_server_trains_the_adapter_in_the_first_round_only():
    method = mpft(dropout=0.0, published_teacher=True, server={"learning_rate": 0.1})
    state = method.start(dim=D, num_classes=C, seed=7)
    before = taught(state)
    uploads = federation.drawn({0: (0, 1, 2), 1: (1, 3)})
    state = method.merge(state, uploads)
    first = taught(state)
    assert not np.array_equal(first["adapter.up"], before["adapter.up"])
    wanted = reference_server(method, state, uploads, seed=7, round=2, frozen=("adapter.down", "adapter.up"))
    second = taught(method.merge(state, uploads))
    for name in TEACHER:
        assert np.array_equal(second[name], first[name]) == name.startswith("adapter.")
        np.testing.assert_allclose(second[name], wanted[name], rtol=1e-3, atol=1e-5)


def test_several_prototypes_of_a_class_are_all_trained_on():
    method = mpft(dropout=0.0, server={"epochs": 1})
    state = method.start(dim=D, num_classes=C, seed=0)
    rng = np.random.default_rng(0)
    many: dict[int, ByClass] = {
        0: Prototypes(
            vectors=rng.standard_normal((5, D)).astype(np.float32), labels=np.array([0, 0, 0, 1, 1])
        )
    }
    wanted = reference_server(method, state, many, seed=0, round=1)
    np.testing.assert_allclose(
        taught(method.merge(state, many))["head.weight"], wanted["head.weight"], atol=1e-6
    )


def test_the_server_leaves_out_units_and_repeats_itself():
    state = mpft().start(dim=D, num_classes=C, seed=0)
    uploads = federation.drawn({0: (0, 1, 2), 1: (1, 3)})
    some, again, whole = (
        taught(mpft(dropout=share, server={"learning_rate": 0.1}).merge(state, uploads))
        for share in (0.5, 0.5, 0.0)
    )
    assert np.array_equal(some["adapter.up"], again["adapter.up"])
    assert not np.array_equal(some["adapter.up"], whole["adapter.up"])


def test_server_learns_the_classes_of_its_prototypes():
    uploads = {m: federation.sent({c: 3 * np.eye(D)[c] for c in range(C)}) for m in range(3)}
    method = mpft(server={"optimizer": "adamw", "learning_rate": 0.01, "epochs": 200, "batch_size": 10})
    net = taught(method.merge(method.start(dim=D, num_classes=C, seed=0), uploads))
    p = 3 * np.eye(D)[:C]
    u = p + np.maximum(p @ net["adapter.down"], 0) @ net["adapter.up"]
    assert (u @ net["head.weight"] + net["head.bias"]).argmax(1).tolist() == list(range(C))


def test_a_diverging_server_is_refused():
    method = mpft(server={"learning_rate": 1e30})
    with pytest.raises(InputError, match=r"diverged; lower method\.server\.learning_rate"):
        method.merge(method.start(dim=D, num_classes=C, seed=0), federation.drawn({0: (0, 1, 2)}))


def test_the_teacher_has_the_width_and_layers_of_its_settings():
    start = taught(mpft(reduction=8, hidden=(5,)).start(dim=64, num_classes=3, seed=0))
    shapes = {name: a.shape for name, a in start.items()}
    assert shapes == {
        "adapter.down": (64, 8),
        "adapter.up": (8, 64),
        "head.weight": (64, 5),
        "head.bias": (5,),
        "head.1.weight": (5, 3),
        "head.1.bias": (3,),
    }
    assert taught(mpft(reduction=8).start(dim=4, num_classes=3, seed=0))["adapter.up"].shape == (1, 4)


# ---------------------------------------------------------------------- the clients


def reference_loss(method: Mpft, down: Down):
    """Return one client's loss as a function of its parameters, record by record; the teacher is a constant."""
    fixed = {name: t.numpy() for name, t in federation.params().items()}

    def loss(p, g, records) -> float:
        net = {n.removeprefix("teacher."): t[int(down.run_G[g])].numpy() for n, t in down.shared.items()}
        total = 0.0
        for x, y, weight in zip(*(a[g].numpy() for a in (records.x, records.y, records.weight)), strict=True):
            own = {name: a[g] for name, a in fixed.items()}
            h = x if method.embeddings == "backbone" else federation.embedded(own, x[None])[0]
            if not method.published_teacher:
                h = h + np.maximum(h @ net["adapter.down"], 0) @ net["adapter.up"]
            teacher = h @ net["head.weight"] + net["head.bias"]
            student = federation.head(p, federation.embedded(p, x[None]))[0]
            log_p = federation.log_softmax(teacher / method.temperature)
            log_q = federation.log_softmax(student / method.temperature)
            distilled = (np.exp(log_p) * (log_p - log_q)).sum() * (
                method.temperature**2 if method.scaled else 1
            )
            total += weight * (method.distillation * distilled - federation.log_softmax(student)[y])
        return float(total)

    return loss


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"distillation": 2.0, "temperature": 1.5, "scaled": True},
        {"published_teacher": True, "distillation": 1.0},
        {"embeddings": "adapted", "distillation": 1.0},
    ],
)
def test_loss_and_gradient_of_each_client_are_the_reference(settings):
    method = mpft(server={"learning_rate": 0.3}, **settings)
    down = federation.answers(method, federation.states(method))
    federation.assert_is_reference(method, down, reference_loss(method, down), federation.batch())


def test_the_trained_adapter_is_part_of_the_teacher_unless_published():
    method = mpft(server={"learning_rate": 0.3})
    down = federation.answers(method, federation.states(method))
    moved = {n: t + 1.0 if n.endswith("adapter.up") else t for n, t in down.shared.items()}
    other = Down(each={}, shared=moved, run_G=down.run_G)
    own, records = federation.params(), federation.batch()
    for published in (False, True):
        found = mpft(published_teacher=published)
        one, two = (federation.loss_of(found, own, records, got) for got in (down, other))
        assert torch.equal(one, two) is published


def test_without_distillation_clients_train_as_alone():
    method = mpft(distillation=0.0)
    down = federation.answers(method, federation.states(method))
    own, records = federation.params(), federation.batch()
    torch.testing.assert_close(
        federation.loss_of(method, own, records, down), federation.loss_of(LocalOnly(), own, records, down)
    )


def test_the_teacher_leaves_out_no_unit():
    network = NETWORK.training(lambda h: h * 0.0)
    method = mpft(embeddings="adapted")
    down = federation.answers(method, federation.states(method))
    own, records = federation.params(), federation.batch()
    u = NETWORK.embed(own, records.x)
    torch.testing.assert_close(
        method.loss(network, own, u, records, down), method.loss(NETWORK, own, u, records, down)
    )


# ---------------------------------------------------------------------- what is released


@pytest.mark.parametrize(
    ("embeddings", "adapter", "depends_on"),
    [
        ("backbone", 3, DependsOn.PUBLIC),
        ("backbone", None, DependsOn.PUBLIC),
        ("adapted", 3, DependsOn.PRIVATE_STATE),
        ("adapted", None, DependsOn.PUBLIC),
    ],
)
def test_what_is_released_depends_on_no_trained_parameter_unless_asked(embeddings, adapter, depends_on):
    method, model = mpft(embeddings=embeddings), PersonalModel(adapter=adapter)
    assert method.encoder_depends_on(model) is depends_on
    network = Network(model)
    own = {name: t for name, t in federation.params().items() if name.startswith("head") or adapter}
    x = federation.batch().x
    found = [method.released(network, p, x) for p in (own, {n: t + 1.0 for n, t in own.items()})]
    assert torch.equal(*found) is (depends_on is DependsOn.PUBLIC)
    assert torch.equal(found[0], x) is (depends_on is DependsOn.PUBLIC)


def test_prototypes_are_kmeans_centres_of_a_tenth_unless_asked_otherwise():
    method = Mpft()
    assert method.summary.settings() == {"name": "kmeans", "ratio": 0.1, "clusters": None, "restarts": 1}
    assert method.summary.assignment is DependsOn.PRIVATE_STATE
    assert mpft().summary == Mean()


def test_the_head_predicts():
    method, own, x = mpft(), federation.params(), federation.batch().x
    down = federation.answers(method, federation.states(method))
    found = method.logits(NETWORK, own, x, down, {})
    assert torch.equal(found, AbstractMethod.logits(method, NETWORK, own, x, down, {}))
    assert found.shape == (G, B, C)
