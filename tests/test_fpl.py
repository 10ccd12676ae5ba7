"""FPL, and what it shares with FedPLVM, against NumPy written record by record."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit import plug
from privkit.batch import Batch
from privkit.methods._down import Down
from privkit.methods.fedplvm import FedPlvm
from privkit.methods.fpl import Fpl
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.prototypes.finch import Finch
from privkit.prototypes.mean import Mean
from privkit.release import Prototypes
from privkit.train.answers import stacked_answers
from tests import clustered
from tests.clustered import NETWORK, B, C, D, G
from tests.test_prototypes import naive_partitions

METHODS = (
    Fpl(),
    FedPlvm(),
    FedPlvm(contrast="log_of_sum", correction="cosine"),
    FedPlvm(alpha=1.0, weight=3.0),
)
both = pytest.mark.parametrize("method", METHODS, ids=["fpl", "fedplvm", "original", "cosines"])


def reference_loss(
    params: Mapping[str, np.ndarray], client: int, *, contrast: float, pull: float, tau: float
) -> float:
    """Return one client's loss, record by record."""
    batch, down = clustered.batch(), clustered.of(client, clustered.answers())
    total = 0.0
    for x, y, weight in zip(*(a[client].numpy() for a in (batch.x, batch.y, batch.weight)), strict=True):
        u = clustered.embedded(params, x[None])[0]
        loss = clustered.cross_entropy(params, u, y)
        if y in down["labels"]:
            masses = [
                np.exp(clustered.cosine(u, p) / tau) if label >= 0 else 0.0
                for p, label in zip(down["centres"], down["labels"], strict=True)
            ]
            own = [m for m, label in zip(masses, down["labels"], strict=True) if label == y]
            unbiased = np.mean(down["centres"][down["labels"] == y], axis=0)
            loss += contrast * -np.log(sum(own) / sum(masses)) + pull * np.mean((u - unbiased) ** 2)
        total += weight * loss
    return float(total)


SETTINGS = ({}, {"contrast": 1.0, "pull": 1.0, "temperature": 0.02}, {"contrast": 0.0, "pull": 2.0})


@pytest.mark.parametrize("settings", SETTINGS)
def test_loss_and_gradient_of_each_client_are_the_reference(settings):
    method = Fpl(**settings)
    live = {name: p.requires_grad_(True) for name, p in clustered.params().items()}
    found = clustered.loss_of(method, live, clustered.batch(), clustered.got(clustered.answers()))
    gradients = dict(zip(live, torch.autograd.grad(found.sum(), list(live.values())), strict=True))

    def reference(params: dict[str, np.ndarray], client: int) -> float:
        return reference_loss(
            params, client, contrast=method.contrast, pull=method.pull, tau=method.temperature
        )

    for g in range(G):
        own = clustered.of(g, clustered.params())
        assert found[g].item() == pytest.approx(reference(own, g), rel=1e-10)
        for name, wanted in clustered.finite_differences(reference, own, g).items():
            np.testing.assert_allclose(gradients[name][g].numpy(), wanted, rtol=1e-4, atol=1e-6)


def test_defaults_are_the_papers_and_say_what_the_original_has():
    method = Fpl()
    assert (method.temperature, method.contrast, method.pull) == (0.07, 0.5, 0.5)
    assert isinstance(method.prototypes, Mean)
    assert method.server == Finch()


# ---------------------------------------------------------------------- both methods


@both
def test_settings_build_the_same_method_again(method):
    assert plug.build("privkit.methods", method.settings()) == method


@both
def test_clients_stacked_are_each_alone(method):
    down = clustered.got(clustered.answers())
    live = {name: p.requires_grad_(True) for name, p in clustered.params().items()}
    whole = clustered.loss_of(method, live, clustered.batch(), down)
    together = torch.autograd.grad(whole.sum(), list(live.values()))
    for g in range(G):
        own = {name: p[g : g + 1].clone().requires_grad_(True) for name, p in clustered.params().items()}
        batch = clustered.batch()
        mine = Batch(batch.x[g : g + 1], batch.y[g : g + 1], batch.weight[g : g + 1])
        loss = clustered.loss_of(method, own, mine, down.part(slice(g, g + 1)))
        torch.testing.assert_close(loss[0], whole[g], rtol=1e-12, atol=1e-14)
        alone = torch.autograd.grad(loss.sum(), list(own.values()))
        for part, of_all in zip(alone, together, strict=True):
            torch.testing.assert_close(part[0], of_all[g], rtol=1e-10, atol=1e-13)
            assert part.abs().max() > 0


def losses_and_gradients(method: Any, each: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    live = {name: p.requires_grad_(True) for name, p in clustered.params().items()}
    loss = clustered.loss_of(method, live, clustered.batch(), clustered.got(each))
    return [loss.detach(), *torch.autograd.grad(loss.sum(), list(live.values()))]


@both
def test_filler_rows_do_not_matter(method):
    plain, filled = (clustered.answers(filler=filler) for filler in (0, 9))
    filled["centres"][:, clustered.MOST :] = 1e6
    filled["centres"][:, : clustered.MOST] = plain["centres"]
    tempting = {**plain, "centres": plain["centres"].clone()}
    tempting["centres"][plain["labels"] < 0] = -50.0
    for other in (filled, tempting):
        for one, two in zip(
            losses_and_gradients(method, plain), losses_and_gradients(method, other), strict=True
        ):
            torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-14)


@both
def test_classes_without_prototypes_add_nothing(method):
    """The fourth client has got nothing yet, and class 5 is nowhere."""
    batch, params = clustered.batch(), clustered.params()
    found = clustered.loss_of(method, params, batch, clustered.got(clustered.answers()))
    own = clustered.of(3, params)
    u = clustered.embedded(own, batch.x[3].numpy())
    entropy = [clustered.cross_entropy(own, u[i], int(batch.y[3, i])) for i in range(B)]
    assert found[3].item() == pytest.approx(np.mean(entropy), rel=1e-12)
    absent = Batch(batch.x, torch.full_like(batch.y, 5), batch.weight)
    silent = {**clustered.answers(), "labels": torch.full((G, clustered.MOST), -1)}
    silent["present"] = torch.zeros(G, C, dtype=torch.bool)
    torch.testing.assert_close(
        clustered.loss_of(method, params, absent, clustered.got(clustered.answers())),
        clustered.loss_of(method, params, absent, clustered.got(silent)),
        rtol=1e-12,
        atol=0,
    )


@both
def test_an_empty_slot_has_no_influence(method):
    batch, down = clustered.batch(), clustered.got(clustered.answers())
    moved = batch.x.clone()
    moved[1, 2:] += 50.0
    other = Batch(moved, batch.y, batch.weight)
    one, two = (clustered.loss_of(method, clustered.params(), b, down)[1] for b in (batch, other))
    assert torch.equal(one, two)


@both
def test_zero_and_orthogonal_embeddings_have_finite_gradients(method):
    """A cosine of 0 has no finite slope under an exponent below 1, and a zero vector has no cosine."""
    u = torch.zeros(1, 3, D, dtype=torch.float64)
    u[0, 1, 0] = 1.0
    u[0, 2] = 1e-9
    u.requires_grad_(True)
    each = {name: tensor[:1].clone() for name, tensor in clustered.answers().items()}
    each["centres"][..., 0] = 0.0
    down = Down(each=each, shared={}, run_G=torch.zeros(1, dtype=torch.int64))
    batch = Batch(
        x=u.detach(), y=torch.tensor([[0, 1, 2]]), weight=torch.full((1, 3), 1 / 3, dtype=torch.float64)
    )
    params = {name: p[:1] for name, p in clustered.params().items()}
    loss = method.loss(NETWORK, params, u, batch, down)
    (gradient,) = torch.autograd.grad(loss.sum(), [u])
    assert loss.isfinite().all()
    assert gradient.isfinite().all()
    assert gradient[0, :2].abs().max() < 1e6


@both
def test_time_and_memory_do_not_hang_on_a_loop_over_clients(method):
    """As many operations for forty clients as for two."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counted(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Counted.calls += 1
            return func(*args, **(kwargs or {}))

    counts = []
    for clients in (2, 40):
        rows = torch.arange(clients) % G
        params = {name: p[rows] for name, p in clustered.params().items()}
        batch, each = clustered.batch(), {n: t[rows] for n, t in clustered.answers().items()}
        many = Batch(batch.x[rows], batch.y[rows], batch.weight[rows])
        down = Down(each=each, shared={}, run_G=torch.zeros(clients, dtype=torch.int64))
        Counted.calls = 0
        with Counted():
            clustered.loss_of(method, params, many, down)
        counts.append(Counted.calls)
    assert counts[0] == counts[1]


# ---------------------------------------------------------------------- the server


def reference_merge(uploads: list[tuple[np.ndarray, list[int]]]) -> dict[int, list[np.ndarray]]:
    """Return the centres of each class's clusters, with sets of rows."""
    found = {}
    for label in {c for _, labels in uploads for c in labels}:
        mine = np.array(
            [v for vectors, labels in uploads for v, c in zip(vectors, labels, strict=True) if c == label]
        )
        mine = mine.astype(np.float32).astype(np.float64)
        cluster = naive_partitions(mine, early_exit=False)[-1] if len(mine) > 1 else np.zeros(1)
        found[label] = [mine[cluster == k].mean(0) for k in np.unique(cluster)]
    return found


@st.composite
def rounds(draw: st.DrawFn) -> list[tuple[np.ndarray, list[int]]]:
    """Draw what some clients send: any number of prototypes of some of the classes."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    sizes = st.lists(st.integers(0, C - 1), min_size=1, max_size=12)
    held = [sorted(draw(sizes)) for _ in range(draw(st.integers(1, 6)))]
    return [(rng.standard_normal((len(labels), D)), labels) for labels in held]


@both
@given(uploads=rounds())
def test_the_server_clusters_each_class_and_averages_the_centres(method, uploads):
    start = method.start(dim=D, num_classes=C, seed=0)
    messages = {m: clustered.sent(v, labels, [m + 1] * len(labels)) for m, (v, labels) in enumerate(uploads)}
    got, wanted = method.shared(method.merge(start, messages)), reference_merge(uploads)
    assert sorted(got["labels"].tolist()) == got["labels"].tolist()
    assert got["present"].tolist() == [c in wanted for c in range(C)]
    assert got["centres"].dtype == got["prototypes"].dtype == np.float32
    for label in range(C):
        mine = got["centres"][got["labels"] == label]
        theirs = np.array(wanted.get(label, np.zeros((0, D)))).reshape(-1, D)
        assert len(mine) == len(theirs)
        order = [np.lexsort(np.round(v, 3).T) for v in (mine, theirs)]
        np.testing.assert_allclose(mine[order[0]], theirs[order[1]], rtol=1e-5, atol=1e-6)
        mean = theirs.mean(0) if len(theirs) else np.zeros(D)
        np.testing.assert_allclose(got["prototypes"][label], mean, rtol=1e-5, atol=1e-6)


@both
@given(uploads=rounds(), random=st.randoms())
def test_the_server_does_not_depend_on_the_order_of_messages(method, uploads, random):
    start = method.start(dim=D, num_classes=C, seed=0)
    messages = [(m, clustered.sent(v, labels)) for m, (v, labels) in enumerate(uploads)]
    one = method.merge(start, dict(messages))
    random.shuffle(messages)
    other = method.merge(start, dict(messages))
    for name in one:
        assert np.array_equal(one[name], other[name])


@both
def test_a_round_replaces_what_the_server_knew(method):
    start = method.start(dim=D, num_classes=C, seed=0)
    before = method.merge(start, {0: clustered.sent(np.ones((2, D)), [0, 1])})
    after = method.shared(method.merge(before, {0: clustered.sent(2 * np.ones((1, D)), [1])}))
    assert after["labels"].tolist() == [1]
    assert after["centres"].tolist() == [[2.0] * D]
    assert after["present"].tolist() == [False, True, *[False] * 4]


@both
def test_exact_record_counts_are_not_used(method):
    start = method.start(dim=D, num_classes=C, seed=0)
    vectors = np.random.default_rng(0).standard_normal((6, D))
    one, other = (
        method.merge(start, {0: clustered.sent(vectors, [0, 0, 0, 1, 1, 1], counts)})
        for counts in ([1] * 6, [1, 100, 3, 7, 1, 50])
    )
    assert all(np.array_equal(one[name], other[name]) for name in one)


@both
def test_runs_with_different_numbers_of_clusters_are_stacked_with_filler(method):
    start = method.start(dim=D, num_classes=C, seed=0)
    rng = np.random.default_rng(3)
    many = method.merge(start, {0: clustered.sent(rng.standard_normal((12 * C, D)), [*range(C)] * 12)})
    shared = [method.shared(state) for state in (start, many, method.merge(start, {0: few()}))]
    down = stacked_answers([{}, {}, {}], shared, torch.tensor([0, 1, 2]))
    clusters = len(many["labels"])
    assert clusters > C
    assert down["centres"].shape == (3, clusters, D)
    assert (down["labels"] >= 0).sum(1).tolist() == [0, clusters, 1]
    alone = stacked_answers([{}], shared[2:], torch.tensor([0]))
    batch = clustered.batch()
    found = [
        clustered.loss_of(
            method,
            {name: p[:1].float() for name, p in clustered.params().items()},
            Batch(batch.x[:1].float(), batch.y[:1], batch.weight[:1].float()),
            part,
        )
        for part in (down.part(slice(2, 3)), alone)
    ]
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)


def few() -> Prototypes:
    return clustered.sent(np.ones((1, D)), [2])


# ---------------------------------------------------------------------- prediction


@both
def test_prediction_by_prototype_is_the_class_of_the_most_similar_one(method):
    method = method.model_copy(update={"predict": "prototype"})
    batch, each = clustered.batch(), clustered.answers()
    found = method.logits(NETWORK, clustered.params(), batch.x, clustered.got(each), {})
    assert found.shape == (G, B, C)
    for g, labels in enumerate(clustered.LABELS[:3]):
        u = clustered.embedded(clustered.of(g, clustered.params()), batch.x[g].numpy())
        centres = each["centres"][g].numpy()
        for i in range(B):
            cosines = [clustered.cosine(u[i], centres[k]) for k in range(len(labels))]
            assert found[g, i].argmax().item() == labels[int(np.argmax(cosines))]
            assert found[g, i].max().item() == pytest.approx(max(cosines), rel=1e-12)
    assert torch.isneginf(found[3]).all()
    assert torch.isneginf(found[:, :, 5]).all()


@both
def test_prediction_by_head_does_not_look_at_prototypes(method):
    found = method.logits(NETWORK, clustered.params(), clustered.batch().x, clustered.got({}), {})
    assert torch.equal(
        found, NETWORK.logits(clustered.params(), NETWORK.embed(clustered.params(), clustered.batch().x))
    )


@both
def test_a_frozen_encoder_trains_its_head_only(method):
    network = Network(PersonalModel())
    named = {n: torch.from_numpy(p)[None] for n, p in network.start(dim=D, num_classes=C, seed=1).items()}
    live = {name: p.requires_grad_(True) for name, p in named.items()}
    batch = clustered.batch()
    one = Batch(batch.x[:1].float(), batch.y[:1], batch.weight[:1].float())
    down = clustered.got(
        {n: t[:1].float() if t.is_floating_point() else t[:1] for n, t in clustered.answers().items()}
    )
    loss = method.loss(network, live, network.embed(live, one.x), one, down)
    gradients = torch.autograd.grad(loss.sum(), list(live.values()))
    assert all(g.isfinite().all() and g.abs().max() > 0 for g in gradients)
