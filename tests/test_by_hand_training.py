"""SGD with the backward pass by hand is SGD with autograd, whatever the method's loss."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks.federation import Engine, Federation, farthest
from privkit import plug
from privkit.batch import Batch
from privkit.defenses._distillation import ClippingRegularization
from privkit.defenses._local import AsPublished
from privkit.methods._base import AbstractMethod, LocalTraining
from privkit.methods._down import Down
from privkit.methods.local_only import LocalOnly
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.train import by_hand

SGD = LocalTraining(epochs=2, batch_size=4, optimizer="sgd", learning_rate=0.05, weight_decay=0.1)
MODEL = PersonalModel(adapter=3)
METHODS = [
    name
    for name, kind in sorted(plug.every("privkit.methods"))
    if getattr(kind, "phases", None) is AbstractMethod.phases  # of several phases, none is trained by hand
]


class Tied(LocalOnly):
    """A loss that also uses parameters directly."""

    def loss(
        self, network: Network, params: dict[str, Tensor], u_GBd: Tensor, batch: Batch, down: Down
    ) -> Tensor:
        more = (params["adapter.up"] ** 2).sum((1, 2)) + (params["head.weight"] ** 3).sum((1, 2))
        return super().loss(network, params, u_GBd, batch, down) + 0.1 * more


class Blind(LocalOnly):
    """A loss that looks at no logits, but at the head."""

    def loss(
        self, network: Network, params: dict[str, Tensor], u_GBd: Tensor, batch: Batch, down: Down
    ) -> Tensor:
        return 0.01 * ((u_GBd**2).sum(-1) * batch.weight).sum(-1) + (params["head.weight"] ** 2).sum((1, 2))


def built(name: str) -> AbstractMethod:
    server = {"server": {"epochs": 1}} if name in ("fedtgp", "mpft") else {}
    found = plug.build("privkit.methods", {"name": name, "training": SGD.model_dump(), **server})
    assert isinstance(found, AbstractMethod)
    return found


def trained(method: AbstractMethod, *, rounds: int = 3) -> list[dict[str, np.ndarray]]:
    given = Federation.of([9, 7, 2], dim=6, num_classes=3, model=MODEL)
    engine = Engine(given, method)
    for _ in range(rounds):
        engine.train(engine.exchange())
    return engine.named()


def compared(method: AbstractMethod, monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how far parameters are apart that were trained by hand and by autograd."""
    steps: list[int] = []
    descend = by_hand.descend
    monkeypatch.setattr(by_hand, "descend", lambda *a, **k: (steps.append(1), descend(*a, **k)))
    ours = trained(method)
    assert steps
    monkeypatch.setattr(by_hand, "applies", lambda *a: False)
    return farthest(ours, trained(method))


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_as_by_autograd(name, monkeypatch):
    assert compared(built(name), monkeypatch) < 2e-6


@pytest.mark.parametrize("kind", [Tied, Blind])
def test_so_does_a_loss_that_uses_parameters_otherwise_or_no_logits(kind, monkeypatch):
    assert compared(kind(training=SGD), monkeypatch) < 2e-6


def test_a_step_by_hand_is_a_step_of_torch():
    given = Federation.of([4], dim=5, num_classes=3, model=MODEL)
    method = LocalOnly(training=SGD.model_copy(update={"epochs": 1}))
    engine = Engine(given, method)
    start = {name: torch.from_numpy(p).clone().requires_grad_(True) for name, p in given.start.items()}
    engine.train(engine.exchange())
    x, y = torch.from_numpy(given.clients[0].x), torch.from_numpy(given.clients[0].y)
    z = x + (x @ start["adapter.down"]).relu() @ start["adapter.up"]
    torch.nn.functional.cross_entropy(z @ start["head.weight"] + start["head.bias"], y).backward()
    torch.optim.SGD(start.values(), lr=0.05, weight_decay=0.1).step()
    (found,) = engine.named()
    for name, wanted in start.items():
        np.testing.assert_allclose(found[name], wanted.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "rule", "setup"),
    [
        ({"adapter": 3, "hidden": (4,)}, AsPublished(), {}),
        ({}, AsPublished(), {}),
        ({"adapter": 3, "dropout": 0.5}, AsPublished(), {}),
        ({"adapter": 3}, ClippingRegularization(), {}),
        ({"adapter": 3}, AsPublished(), {"momentum": 0.5}),
        ({"adapter": 3}, AsPublished(), {"optimizer": "adamw"}),
    ],
)
def test_anything_else_is_left_to_autograd(model: dict[str, Any], rule, setup: dict[str, Any]):
    changed = LocalTraining.model_validate({**SGD.model_dump(), **setup})
    assert not by_hand.applies(Network(PersonalModel.model_validate(model)), rule, changed)
    assert by_hand.applies(Network(MODEL), AsPublished(), SGD)
