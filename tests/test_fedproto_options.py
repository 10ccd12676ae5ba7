"""The two faults of the published code that FedProto can make: against that code's own arithmetic, done naively."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from privkit.batch import Batch
from privkit.errors import InputError
from privkit.methods._averages import averages_by_size
from privkit.methods._down import Down
from privkit.methods.fedproto import FedProto
from privkit.release import Prototypes, SumsAndCounts
from tests import federation
from tests.federation import NETWORK, C, D, G

AS_PUBLISHED = FedProto(pull=3.0, mse="broadcast_as_published")


def everybody() -> Down:
    """Return answers in which every class is present."""
    method = FedProto()
    states = [
        method.merge(
            method.start(dim=D, num_classes=C, seed=0), federation.drawn({0: tuple(range(C))}, seed=run)
        )
        for run in range(2)
    ]
    return federation.answers(method, states)


def test_the_published_distance_is_that_of_the_broadcast():
    own, records, down = federation.params(), federation.batch(), everybody()
    with_pull = federation.loss_of(AS_PUBLISHED, own, records, down)
    without = federation.loss_of(FedProto(pull=0.0), own, records, down)
    for g in range(G):
        kept = records.weight[g] > 0
        f = NETWORK.embed(own, records.x)[g, kept]
        p = down["prototypes"][g][records.y[g, kept]].unsqueeze(1)
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            naive = torch.nn.functional.mse_loss(f, p)
        assert "target size" in str(raised[0].message)
        torch.testing.assert_close(with_pull[g] - without[g], 3.0 * naive, rtol=1e-10, atol=1e-12)


@given(st.integers(0, 1000), st.sampled_from([1e-2, 1.0, 300.0]))
def test_the_published_distance_in_float32_is_near_the_broadcast(seed, size):
    rng = np.random.default_rng(seed)
    f = torch.from_numpy(rng.standard_normal((1, 16, 32)).astype(np.float32)).requires_grad_(True)
    p = torch.from_numpy((size * rng.standard_normal((1, C, 32))).astype(np.float32))
    records = Batch(
        x=f.detach(), y=torch.from_numpy(rng.integers(0, C, (1, 16))), weight=torch.full((1, 16), 1 / 16)
    )
    down = Down(
        each={"prototypes": p, "present": torch.ones(1, C, dtype=torch.bool)},
        shared={},
        run_G=torch.tensor([0]),
    )
    found = AS_PUBLISHED.model_copy(update={"pull": 1.0})
    head = {"head.weight": torch.zeros(1, 32, C), "head.bias": torch.zeros(1, C)}
    closed = found.loss(NETWORK, head, f, records, down) - np.log(C)
    naive = (f.double()[0, None] - p.double()[0][records.y[0]][:, None]).square().mean()
    assert closed.item() == pytest.approx(naive.item(), rel=1e-5, abs=1e-5)
    (slope,) = torch.autograd.grad(closed.sum(), f, retain_graph=True)
    (wanted,) = torch.autograd.grad(naive, f)
    torch.testing.assert_close(slope, wanted, rtol=1e-4, atol=1e-5 * wanted.abs().max().item())


def test_the_published_distance_pulls_every_embedding_to_the_mean_prototype_of_its_batch():
    records, down = federation.batch(), everybody()
    u = NETWORK.embed(federation.params(), records.x).requires_grad_(True)
    head = {n: torch.zeros_like(p) for n, p in federation.params().items()}
    (slope,) = torch.autograd.grad(AS_PUBLISHED.loss(NETWORK, head, u, records, down).sum(), u)
    for g in range(G):
        weight = records.weight[g]
        mean = weight @ down["prototypes"][g][records.y[g]]
        wanted = 3.0 * weight.unsqueeze(-1) * 2 * (u[g] - mean) / D
        torch.testing.assert_close(slope[g], wanted, rtol=1e-10, atol=1e-12)


def test_a_class_that_nobody_holds_takes_no_part_in_the_published_distance():
    method = FedProto()
    down = federation.answers(method, federation.states(method))
    own, records = federation.params(), federation.batch()
    far = {n: t.clone() for n, t in down.shared.items()}
    far["prototypes"][0, 3] = 1e6  # the first run's clients do not hold class 3
    other = Down(each={}, shared=far, run_G=down.run_G)
    assert (records.y[down.run_G == 0] == 3).any()
    assert torch.equal(
        federation.loss_of(AS_PUBLISHED, own, records, down),
        federation.loss_of(AS_PUBLISHED, own, records, other),
    )


def test_the_intended_loss_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for method in (FedProto(), AS_PUBLISHED):
            loss = federation.loss_of(method, federation.params(), federation.batch(), everybody())
            assert loss.shape == (G,)


# ---------------------------------------------------------------------- the published weights


@st.composite
def messages(draw) -> dict[int, Prototypes]:
    """Draw what some clients send, with record counts."""
    held = draw(st.lists(st.lists(st.integers(0, C - 1), unique=True, min_size=1), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 100)))
    return {
        m: Prototypes(
            vectors=rng.standard_normal((len(labels), D)).astype(np.float32),
            labels=np.array(labels),
            counts=rng.integers(1, 50, len(labels)),
        )
        for m, labels in enumerate(held)
    }


@given(messages())
def test_published_weights_are_parts_of_all_clients_records(uploads):
    method = FedProto(weights="published")
    got = method.shared(method.merge(method.start(dim=D, num_classes=C, seed=0), uploads))
    sizes = {m: int(sent.tensors()["counts"].sum()) for m, sent in uploads.items()}
    for c in range(C):
        wanted = np.zeros(D)
        for m, sent in uploads.items():
            for vector, label in zip(sent.vectors, sent.labels, strict=True):
                wanted += (label == c) * sizes[m] / sum(sizes.values()) * vector
        np.testing.assert_allclose(got["prototypes"][c], wanted, rtol=1e-5, atol=1e-6)
        assert got["present"][c] == any(c in sent.labels for sent in uploads.values())


def test_published_weights_shrink_a_class_that_a_client_lacks():
    ones = np.ones(D)
    uploads = {0: federation.sent({0: ones, 1: ones}, counts=10), 1: federation.sent({0: ones}, counts=20)}
    start = FedProto().start(dim=D, num_classes=2, seed=0)
    published = FedProto(weights="published").merge(start, uploads)["prototypes"]
    np.testing.assert_allclose(published, [ones, 0.5 * ones], rtol=1e-6)
    np.testing.assert_allclose(FedProto().merge(start, uploads)["prototypes"], [ones, ones], rtol=1e-6)


@pytest.mark.parametrize(
    "sent",
    [
        federation.sent({0: np.ones(D)}),
        SumsAndCounts(
            vectors=np.ones((1, D), np.float32), labels=np.array([0]), totals=np.ones(1, np.float32)
        ),
    ],
)
def test_published_weights_need_record_counts(sent):
    uploads = {0: federation.sent({0: np.ones(D)}, counts=3), 2: sent}
    with pytest.raises(InputError, match=r"client 2 sent no exact record counts, .* set weights to uniform"):
        averages_by_size(uploads, num_classes=C, dim=D)


def test_defaults_are_neither_fault():
    assert (FedProto().mse, FedProto().weights) == ("intended", "uniform")
