"""The stacked engine against each client trained alone by torch, and dropout that nobody else's presence changes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from privkit.defenses._distillation import ClippingRegularization
from privkit.defenses._local import AsPublished, LocalRule
from privkit.methods._base import LocalTraining
from privkit.methods._down import Down
from privkit.methods.fedproto import FedProto
from privkit.methods.local_only import LocalOnly
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.train.cohort import Client, Cohort
from privkit.train.local import Fleet
from tests import alone

CPU = torch.device("cpu")
D, C, ROUNDS = 12, 4, 6
BOTH = slice(0, 2)
SIZES = (21, 30, 1, 8, 13)  # a batch is of 8; the smallest takes 2 steps a round, 12 in all
PAPER = ClippingRegularization(radius=2.0, weight=0.5, momentum=0.9)
# weight and momentum as published are too close to 0 and 1 for the teacher to be seen in 12 steps
PUBLISHED = ClippingRegularization(radius=6.0, weight=0.5, momentum=0.9, scaled=True, clamped=True, warm_up=5)
DEFAULTS = ClippingRegularization(radius=5.0, scaled=True, clamped=True, warm_up=5)


def clients(sizes: Sequence[int] = SIZES) -> list[Client]:
    """Return clients of different sizes; the records of each depend on its number alone."""
    return [_client(index, size) for index, size in enumerate(sizes)]


def _client(index: int, size: int) -> Client:
    rng = np.random.default_rng(index)
    x = (2 * rng.standard_normal((size, D))).astype(np.float32)
    y = rng.integers(0, C, size)
    return Client(run=0, index=index, seed=3, x=x, y=y, x_test=x[:1], y_test=y[:1])


def fleet(model: PersonalModel, members: Sequence[Client], rule: LocalRule) -> Fleet:
    network, cohort = Network(model), Cohort.stack(members, CPU)
    start = network.start(dim=D, num_classes=C, seed=3)
    params = {name: torch.from_numpy(np.stack([p] * len(members))) for name, p in start.items()}
    return Fleet.start(network, cohort, params, training=LocalTraining(), rule=rule)


def setup(rule: ClippingRegularization | None = None, *, dropout: float = 0.0) -> alone.Setup:
    rng = np.random.default_rng(99)
    prototypes = [torch.from_numpy(rng.standard_normal((C, D)).astype(np.float32)) for _ in range(ROUNDS)]
    present = torch.tensor([True, True, False, True])
    return alone.Setup(prototypes=prototypes, present=present, rule=rule, dropout=dropout)


def fedproto(how: alone.Setup) -> FedProto:
    training = LocalTraining(
        epochs=how.epochs,
        batch_size=how.size,
        learning_rate=how.learning_rate,
        weight_decay=how.weight_decay,
    )
    return FedProto(pull=how.pull, training=training)


def trained(together: Fleet, how: alone.Setup) -> Fleet:
    """Return a fleet after every round of a setup."""
    for round, prototypes in enumerate(how.prototypes):
        shared = {"prototypes": prototypes[None], "present": how.present[None]}
        down = Down(each={}, shared=shared, run_G=together.cohort.runs)
        together.train_round(round, fedproto(how), down)
    return together


def of(together: Fleet, index: int) -> dict[str, Tensor]:
    """Return a client's parameters."""
    (g,) = [g for g, client in enumerate(together.cohort.clients) if client.index == index]
    return {name: p[g] for name, p in together.params.items()}


MODELS = [
    PersonalModel(),
    PersonalModel(adapter=3),
    PersonalModel(hidden=(7,)),
    PersonalModel(adapter=3, hidden=(9, 5)),
]


# torch's own AdamW(fused=True) misreads gradients that are not contiguous, silently: the engine has its own, and keeps
# weights as [in, out], and the oracle here is the plain, unfused one.
@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"adapter={m.adapter},hidden={list(m.hidden)}")
@pytest.mark.parametrize(
    "rule", [None, PAPER, PUBLISHED, DEFAULTS], ids=["none", "paper", "published", "defaults"]
)
def test_every_client_ends_where_torch_alone_brings_it(model, rule):
    how = setup(rule)
    together = trained(fleet(model, clients(), rule or AsPublished()), how)
    start = Network(model).start(dim=D, num_classes=C, seed=3)
    for g, client in enumerate(together.cohort.clients):
        module = alone.After(start)
        teacher = alone.train(module, client, how)
        for name, wanted in module.named().items():
            found = together.params[name][g]
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5, msg=lambda m: f"{name}: {m}")  # noqa: B023
            assert (found - torch.from_numpy(start[name])).abs().max() > 0.02
        if teacher is not None:
            for name, wanted in alone.head_named(teacher).items():
                torch.testing.assert_close(together.memory[name][g], wanted, rtol=0, atol=1e-5)
    assert together.optimizers[0].memory()["steps"]["all"].tolist() == sorted(
        (12 * -(-n // 8) for n in SIZES), reverse=True
    )


@pytest.mark.parametrize(
    "change",
    [
        {"scaled": False},
        {"clamped": False},
        {"warm_up": 6},
        {"momentum": 0.8},
        {"temperature": 3.0},
        {"softness": 0.2},
        {"radius": 1.5},
        {"weight": 0.4},
    ],
)
def test_every_switch_of_the_distillation_would_be_seen(change):
    """The oracle tells each published switch from its neighbour by more than a hundred times its tolerance."""
    how, client = setup(PUBLISHED), _client(1, 30)
    start = Network(MODELS[3]).start(dim=D, num_classes=C, seed=3)
    one, other = alone.After(start), alone.After(start)
    alone.train(one, client, how)
    alone.train(other, client, setup(PUBLISHED.model_copy(update=change)))
    assert max((a - b).abs().max() for a, b in zip(one.parameters(), other.parameters(), strict=True)) > 1e-3


# ---------------------------------------------------------------------- dropout


@pytest.mark.parametrize("rule", [None, PUBLISHED], ids=["none", "published"])
def test_with_dropout_every_client_ends_where_torch_alone_brings_it(rule):
    """One student passes the head once per step, whatever the terms of its loss; the teacher leaves nothing out."""
    model, how = PersonalModel(adapter=5, hidden=(9, 6), dropout=0.25), setup(rule, dropout=0.25)
    together = trained(fleet(model, clients(), rule or AsPublished()), how)
    start = Network(model).start(dim=D, num_classes=C, seed=3)
    for g, client in enumerate(together.cohort.clients):
        module = alone.After(start)
        alone.train(module, client, how)
        for name, wanted in module.named().items():
            torch.testing.assert_close(together.params[name][g], wanted, rtol=0, atol=1e-5)


def test_a_client_leaves_out_the_same_units_whoever_is_beside_it():
    model, how = PersonalModel(adapter=5, hidden=(9,), dropout=0.5), setup(PAPER, dropout=0.5)
    together = trained(fleet(model, clients(), PAPER), how)
    without = trained(fleet(model, clients((21, 30, 1)), PAPER), how)
    single = trained(fleet(model, [_client(1, 30)], PAPER), how)
    for name, p in of(together, 1).items():
        torch.testing.assert_close(of(without, 1)[name], p, rtol=0, atol=1e-6)
        torch.testing.assert_close(of(single, 1)[name], p, rtol=0, atol=1e-6)


def test_clients_and_rounds_and_steps_leave_out_different_units():
    cohort = Cohort.stack(clients((4, 4)), CPU)
    ones = torch.ones(2, 4, 50)
    drops = cohort.drops(0, 0.5)(BOTH)
    seen = [drops(ones), drops(ones), cohort.drops(1, 0.5)(BOTH)(ones)]
    masks = {one[g].numpy().tobytes() for one in seen for g in range(2)}
    assert len(masks) == 6
    assert torch.equal(cohort.drops(0, 0.5)(BOTH)(ones), seen[0])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_mean(share):
    cohort = Cohort.stack(clients((4, 4)), CPU)
    kept = cohort.drops(0, share)(BOTH)(torch.ones(2, 400, 250))
    values = kept.unique().tolist()
    assert values == pytest.approx([0.0, 1 / (1 - share)])
    error = (share / (1 - share) / kept[0].numel()) ** 0.5
    for one in kept:
        assert abs(one.mean().item() - 1) < 5 * error


def test_some_of_the_clients_draw_what_they_would_in_the_whole():
    whole = Cohort.stack(clients((4, 4)), CPU).drops(0, 0.5)(BOTH)
    ones = torch.ones(2, 4, 50)
    first, second = whole(ones), whole(ones)
    for g in range(2):
        alone_ = Cohort.stack(clients((4, 4)), CPU).drops(0, 0.5)(slice(g, g + 1))
        assert torch.equal(alone_(ones[:1])[0], first[g])
        assert torch.equal(alone_(ones[:1])[0], second[g])


def test_nothing_is_left_out_of_tests_releases_and_teachers():
    model = PersonalModel(adapter=5, hidden=(9,), dropout=0.9)
    dropped, still = (trained(fleet(m, clients(), PAPER), setup(PAPER)) for m in (model, model))
    plain = Network(PersonalModel(adapter=5, hidden=(9,)))
    params = {name: p.clone() for name, p in dropped.params.items()}
    x = dropped.cohort.x
    wanted = plain.embed(params, x)
    for z, w, client in zip(dropped.released(LocalOnly()), wanted, dropped.cohort.clients, strict=True):
        assert np.array_equal(z, w[: len(client.y)].double().numpy())
    training = dropped.network.training(dropped.cohort.drops(0, 0.9)(slice(0, len(SIZES))))
    assert not torch.equal(training.logits(params, wanted), plain.logits(params, wanted))
    assert torch.equal(training.still.logits(params, wanted), plain.logits(params, wanted))
    down = nothing_said(dropped)
    assert dropped.accuracy(LocalOnly(), down, num_classes=C) == still.accuracy(
        LocalOnly(), down, num_classes=C
    )


# ---------------------------------------------------------------------- memory


@pytest.mark.parametrize("at_once", [1, 7, 16, 24])
def test_what_passes_at_once_changes_nothing_but_last_bits(monkeypatch, at_once):
    model, how = PersonalModel(adapter=5, hidden=(9,), dropout=0.25), setup(PUBLISHED)
    whole = trained(fleet(model, clients(), PUBLISHED), how)
    monkeypatch.setattr(Network, "at_once", at_once)
    pieces = trained(fleet(model, clients(), PUBLISHED), how)
    for name, p in whole.params.items():
        torch.testing.assert_close(pieces.params[name], p, rtol=0, atol=1e-6)
    for one, other in zip(whole.released(LocalOnly()), pieces.released(LocalOnly()), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=1e-5)


class Nearest(LocalOnly):
    """Classifies by the nearest mean of a client's own records."""

    def recall(self, z_GNd: Tensor, y_GN: Tensor, *, num_classes: int) -> dict[str, Tensor]:
        member_GCN = (y_GN.unsqueeze(1) == torch.arange(num_classes).view(1, -1, 1)).float()
        return {"means": member_GCN @ z_GNd / member_GCN.sum(-1, keepdim=True)}

    def logits(
        self, network: Network, params: dict[str, Tensor], x: Tensor, down: Down, own: dict[str, Tensor]
    ) -> Tensor:
        found = -torch.cdist(network.embed(params, x), own["means"])
        return found.nan_to_num(nan=-torch.inf)


@pytest.mark.parametrize("at_once", [1, 5, 16_384])
@pytest.mark.parametrize("shared", [False, True])
def test_accuracy_is_that_of_every_record_alone(monkeypatch, at_once, shared):
    monkeypatch.setattr(Network, "at_once", at_once)
    rng = np.random.default_rng(1)
    some = [(rng.standard_normal((t, D)).astype(np.float32), rng.integers(0, C, t)) for t in (9, 4, 17)]
    tests = [some[0]] * 3 if shared else some
    members = [replace(_client(i, 20 - i), x_test=x, y_test=y) for i, (x, y) in enumerate(tests)]
    together = fleet(PersonalModel(adapter=3), members, AsPublished())
    found = together.accuracy(Nearest(), nothing_said(together), num_classes=C)
    for client, share in zip(together.cohort.clients, found, strict=True):
        held = np.unique(client.y)
        means = np.stack([client.x[client.y == c].mean(0) for c in held])
        nearest = [held[np.linalg.norm(means - x, axis=1).argmin()] for x in client.x_test]
        assert share == pytest.approx(np.mean(nearest == client.y_test))


def nothing_said(together: Fleet) -> Down:
    return Down(each={}, shared={}, run_G=together.cohort.runs)
