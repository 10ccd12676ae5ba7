"""FedTGP against NumPy with its gradient written by hand, and the server's training that MPFT shares."""

import math

import numpy as np
import pytest
import torch

from privkit.errors import InputError
from privkit.methods._server_training import ServerTraining, trained
from privkit.methods.fedproto import FedProto
from privkit.methods.fedtgp import FedTgp, apart
from privkit.noise import Purpose, keyed
from tests import federation
from tests.federation import NETWORK, B, C, D, G

NET = ("table", "first.weight", "first.bias", "second.weight", "second.bias")


def tgp(**server) -> FedTgp:
    return FedTgp.model_validate({"server": server})


# ---------------------------------------------------------------------- the server


def reference_margin(uploads, limit: float) -> float:
    """Return the smaller of the limit and the largest distance from a class to its nearest neighbour."""
    mine = [dict(zip(sent.labels.tolist(), sent.vectors, strict=True)) for sent in uploads.values()]
    means = {c: np.mean([p[c] for p in mine if c in p], axis=0) for p in mine for c in p}
    gaps = [
        min(np.linalg.norm(means[c] - means[other]) for other in means if other != c)
        for c in means
        if len(means) > 1
    ]
    return float(min(max(gaps, default=np.inf), limit))


def reference_step(net, p, y, margin: float, rate: float):
    """Return the network after one step of SGD on a batch, and its loss, gradients by hand."""
    t, w1, b1, w2, b2 = (net[name].astype(np.float64) for name in NET)
    h = np.maximum(t @ w1 + b1, 0.0)
    g = h @ w2 + b2
    apart_BCd = p[:, None] - g[None]
    distance = np.sqrt((apart_BCd**2).sum(-1))
    own = np.eye(len(t))[y]
    log_q = federation.log_softmax(-(distance + margin * own))
    of_distance = -(np.exp(log_q) - own) / len(p)
    of_g = (of_distance[..., None] * -apart_BCd / distance[..., None]).sum(0)
    of_h = (of_g @ w2.T) * (h > 0)
    slopes = (of_h @ w1.T, t.T @ of_h, of_h.sum(0), h.T @ of_g, of_g.sum(0))
    after = {name: net[name] - rate * s for name, s in zip(NET, slopes, strict=True)}
    return after, float(-(log_q * own).sum(1).mean())


def outputs(net) -> np.ndarray:
    h = np.maximum(net["table"] @ net["first.weight"] + net["first.bias"], 0.0)
    return h @ net["second.weight"] + net["second.bias"]


@pytest.mark.parametrize(("size", "rate", "limit"), [(256, 0.5, 100.0), (2, 0.05, 0.3)])
def test_server_step_is_the_reference(size, rate, limit):
    method = FedTgp.model_validate(
        {"margin": limit, "server": {"batch_size": size, "learning_rate": rate, "epochs": 3}}
    )
    start = method.start(dim=D, num_classes=C, seed=5)
    uploads = federation.drawn({4: (0, 1, 2), 1: (1, 2)})
    found = method.merge(start, uploads)

    p = np.concatenate([uploads[m].prototypes().vectors for m in (1, 4)]).astype(np.float64)
    y, net = np.array([1, 2, 0, 1, 2]), {name: start[name].astype(np.float64) for name in NET}
    rng, margin = keyed(5, Purpose.SERVER, round=1), reference_margin(uploads, limit)
    for _ in range(3):
        order = rng.permutation(5)
        for at in range(0, 5, size):
            chosen = order[at : at + size]
            net, _ = reference_step(net, p[chosen], y[chosen], margin, rate)
    for name in NET:
        np.testing.assert_allclose(found[name], net[name], rtol=1e-4, atol=1e-5, err_msg=name)
        assert not np.allclose(found[name], start[name], atol=1e-4)
    np.testing.assert_allclose(found["prototypes"], outputs(net), rtol=1e-4, atol=1e-4)
    assert found["holders"].tolist() == [1, 2, 2, 0]


def test_loss_of_the_server_is_the_reference_and_so_is_its_slope():
    rng = np.random.default_rng(0)
    p, g, y = rng.standard_normal((6, D)), rng.standard_normal((C, D)), rng.integers(0, C, 6)
    for margin in (0.0, 0.7, 100.0):
        live = torch.from_numpy(g).requires_grad_(True)
        found = apart(torch.from_numpy(p), torch.from_numpy(y), live, margin=margin)

        def loss(at, margin=margin) -> float:
            distance = np.array([[np.linalg.norm(a - b) for b in at["g"]] for a in p])
            distance[np.arange(6), y] += margin
            return float(-federation.log_softmax(-distance)[np.arange(6), y].mean())

        assert found.item() == pytest.approx(loss({"g": g}), rel=1e-10)
        (slope,) = torch.autograd.grad(found, live)
        wanted = federation.finite_differences(loss, {"g": g})["g"]
        np.testing.assert_allclose(slope.numpy(), wanted, rtol=1e-5, atol=1e-8)


def test_a_prototype_that_is_hit_exactly_has_a_finite_slope():
    g = torch.ones(C, D).requires_grad_(True)
    loss = apart(torch.ones(2, D), torch.tensor([0, 1]), g, margin=1.0)
    assert torch.autograd.grad(loss, g)[0].isfinite().all()


@pytest.mark.parametrize(
    ("held", "limit", "wanted"),
    [
        ({0: {0: 0.0, 1: 1.0, 2: 5.0}}, 100.0, 4.0),  # gaps 1, 1, 4
        ({0: {0: 0.0, 1: 1.0, 2: 5.0}}, 2.5, 2.5),
        ({0: {0: 0.0, 2: 6.0}, 1: {0: 2.0}}, 100.0, 5.0),  # class 0 averages 1
        ({0: {1: 3.0}}, 100.0, 100.0),  # no other class to be apart from
    ],
)
def test_margin_is_the_widest_gap_between_class_averages_up_to_a_limit(monkeypatch, held, limit, wanted):
    seen = []
    monkeypatch.setattr(
        "privkit.methods.fedtgp.apart",
        lambda p, y, g, *, margin: seen.append(margin) or g.sum() * 0.0,
    )
    method = FedTgp(margin=limit)
    uploads = {m: federation.sent({c: [v, 0.0] for c, v in one.items()}) for m, one in held.items()}
    method.merge(method.start(dim=2, num_classes=3, seed=0), uploads)
    assert len(seen) == 100
    assert seen == pytest.approx([wanted] * 100)


def test_the_server_goes_on_from_its_own_network_and_draws_a_new_order():
    method = tgp(batch_size=2, epochs=2, learning_rate=0.1)
    first = method.merge(method.start(dim=D, num_classes=C, seed=0), federation.drawn({0: (0, 1, 2)}))
    second = method.merge(first, federation.drawn({0: (0, 1, 2)}))
    afresh = method.merge({**first, "round": np.array(0)}, federation.drawn({0: (0, 1, 2)}))
    assert second["round"] == 2
    assert not np.array_equal(second["table"], first["table"])
    assert not np.array_equal(second["table"], afresh["table"])


def test_only_outputs_of_the_network_leave_the_server():
    method = FedTgp()
    server = method.merge(method.start(dim=D, num_classes=C, seed=0), federation.drawn({0: (0, 2)}))
    got = method.shared(server)
    assert set(got) == {"prototypes", "present"}
    assert got["present"].tolist() == [True, False, True, False]
    np.testing.assert_allclose(got["prototypes"], outputs(server), rtol=1e-5, atol=1e-6)
    assert method.down(server, 0) == {}


def test_training_brings_each_prototype_to_its_own_class():
    # around a common centre the distances to all prototypes would stay alike
    method = tgp(learning_rate=0.1, epochs=400)
    uploads = {m: federation.sent({c: 3 * np.eye(D)[c] for c in range(C)}) for m in range(3)}
    start = method.start(dim=D, num_classes=C, seed=0)
    found = method.merge(start, uploads)["prototypes"]
    distance = np.linalg.norm(3 * np.eye(D)[:C, None] - found[None], axis=-1)
    assert distance.argmin(1).tolist() == list(range(C))


def test_huge_noise_leaves_finite_prototypes():
    method = FedTgp()
    uploads = federation.drawn({m: tuple(range(C)) for m in range(4)}, size=1e4)
    state = method.start(dim=D, num_classes=C, seed=0)
    for _ in range(3):
        state = method.merge(state, uploads)
    assert np.isfinite(state["prototypes"]).all()


def test_a_diverging_server_is_refused():
    method = tgp(learning_rate=1e30)
    with pytest.raises(
        InputError, match=r"diverged; lower method\.server\.learning_rate, or set method\.cap"
    ):
        method.merge(method.start(dim=D, num_classes=C, seed=0), federation.drawn({0: (0, 1, 2)}))


def test_start_is_that_of_torch_modules():
    start = FedTgp().start(dim=256, num_classes=100, seed=3)
    assert start["table"].std() == pytest.approx(1.0, abs=0.02)
    for name in ("first.weight", "first.bias", "second.weight", "second.bias"):
        assert np.abs(start[name]).max() <= 1 / 16
        assert start[name].std() == pytest.approx(1 / 16 / math.sqrt(3), rel=0.1)
    other = FedTgp().start(dim=256, num_classes=100, seed=4)
    assert not np.array_equal(start["table"], other["table"])


# ---------------------------------------------------------------------- the clients


@pytest.mark.parametrize("pull", [1.0, 10.0])
def test_loss_and_gradient_of_each_client_are_the_reference(pull):
    method = FedTgp(pull=pull)
    down = federation.answers(method, federation.states(method))

    def reference(p, g, records) -> float:
        got, total = {n: t[int(down.run_G[g])].numpy() for n, t in down.shared.items()}, 0.0
        for x, y, weight in zip(*(a[g].numpy() for a in (records.x, records.y, records.weight)), strict=True):
            u = federation.embedded(p, x[None])[0]
            loss = -federation.log_softmax(federation.head(p, u))[y]
            total += weight * (loss + pull * got["present"][y] * np.mean((u - got["prototypes"][y]) ** 2))
        return float(total)

    federation.assert_is_reference(method, down, reference, federation.batch())


def test_clients_are_pulled_as_in_fedproto():
    method = FedTgp(pull=0.7)
    down = federation.answers(method, federation.states(method))
    own, records = federation.params(), federation.batch()
    assert torch.equal(
        federation.loss_of(method, own, records, down),
        federation.loss_of(FedProto(pull=0.7), own, records, down),
    )


def test_prediction_is_by_head_or_by_the_nearest_prototype_that_anybody_holds():
    down = federation.answers(FedTgp(), federation.states(FedTgp()))
    own, x = federation.params(), federation.batch().x
    by_head = FedTgp().logits(NETWORK, own, x, down, {}).argmax(-1)
    nearest = FedTgp(predict="prototype").logits(NETWORK, own, x, down, {}).argmax(-1)
    for g in range(G):
        p, got = (
            federation.of(g, own),
            {n: t[g].numpy() for n, t in (("p", down["prototypes"]), ("h", down["present"]))},
        )
        u = federation.embedded(p, x[g].numpy())
        assert by_head[g].tolist() == federation.head(p, u).argmax(1).tolist()
        distance = np.linalg.norm(u[:, None] - got["p"][None], axis=-1)
        distance[:, ~got["h"]] = np.inf
        assert nearest[g].tolist() == distance.argmin(1).tolist()
        assert (nearest[g] != 3).all() or got["h"][3]
    assert by_head.shape == (G, B)


# ---------------------------------------------------------------------- training on the server


def test_the_step_size_warms_up_and_falls_along_a_cosine():
    original = ServerTraining(epochs=20, warm_up=4, cosine=True)
    shares = [original.share(epoch) for epoch in range(20)]
    assert shares[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    wanted = [0.5 * (1 + math.cos(math.pi * k / 16)) for k in range(16)]
    np.testing.assert_allclose(shares[4:], wanted)
    assert {ServerTraining().share(epoch) for epoch in range(30)} == {1.0}


def test_it_stops_when_the_last_twenty_losses_hardly_differ():
    how = ServerTraining(settled=0.001)
    assert not how.enough([1.0] * 20)
    assert how.enough([9.0] * 5 + [1.0] * 20)
    assert not how.enough([9.0] + [1.0] * 19)
    assert not how.enough([1.0] * 20 + [1.01])
    assert not ServerTraining().enough([1.0] * 100)


def minimised(setup: ServerTraining, *, rows: int = 6) -> tuple[np.ndarray, list[list[int]]]:
    """Return where training ends that starts at 1 and has slope (1, 10), and the rows of every step."""
    seen = list[list[int]]()

    def loss(live, chosen):
        seen.append(chosen.tolist())
        return live["w"] @ torch.tensor([1.0, 10.0])

    start = {"w": np.ones(2, dtype=np.float32)}
    found = trained(setup, start, loss, rows=rows, rng=np.random.default_rng(0))
    assert start["w"].tolist() == [1.0, 1.0]
    return found["w"], seen


def test_every_pass_sees_each_row_once_in_an_order_of_its_own():
    _, seen = minimised(ServerTraining(batch_size=4, epochs=3))
    assert [len(rows) for rows in seen] == [4, 2] * 3
    passes = [seen[2 * e] + seen[2 * e + 1] for e in range(3)]
    assert [sorted(one) for one in passes] == [list(range(6))] * 3
    assert passes[0] != passes[1]


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ({}, [1 - 0.1, 1 - 1.0]),
        ({"clip_gradient": 1.0}, [1 - 0.1 / math.sqrt(101), 1 - 1 / math.sqrt(101)]),
        ({"clip_gradient": 50.0}, [1 - 0.1, 1 - 1.0]),
        ({"weight_decay": 0.5}, [1 - 0.1 * 1.5, 1 - 0.1 * 10.5]),
        ({"optimizer": "adamw"}, [1 - 0.1, 1 - 0.1]),
        ({"optimizer": "adamw", "weight_decay": 0.5}, [0.95 - 0.1, 0.95 - 0.1]),
        ({"warm_up": 2}, [1 - 0.05, 1 - 0.5]),
        ({"epochs": 2, "momentum": 0.5}, [1 - 0.1 - 0.15, 1 - 1.0 - 1.5]),
    ],
)
def test_one_step_is_that_of_its_settings(how, wanted):
    found, _ = minimised(ServerTraining.model_validate({"learning_rate": 0.1, "epochs": 1, **how}))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_training_ends_early_where_nothing_changes():
    seen = []

    def loss(live, chosen):
        seen.append(len(chosen))
        return live["w"].sum() * 0.0

    setup = ServerTraining(batch_size=3, epochs=50, settled=0.001)
    trained(setup, {"w": np.ones(2, dtype=np.float32)}, loss, rows=6, rng=np.random.default_rng(0))
    assert len(seen) == 22  # more than 20 steps, at the end of a pass
