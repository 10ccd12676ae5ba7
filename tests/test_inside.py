"""Adapters inside the backbone, all clients in one batch, against hooks on a network of each client's own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from privkit.defenses._distillation import ClippingRegularization
from privkit.defenses._local import AsPublished, LocalRule
from privkit.errors import InputError
from privkit.inside import InsideNetwork
from privkit.methods._base import LocalTraining
from privkit.methods._down import Down
from privkit.methods.fedproto import FedProto
from privkit.methods.local_only import LocalOnly
from privkit.models.onnx import Onnx
from privkit.models.projected import Projected
from privkit.models.usps_cnn import UspsCnn
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.train.cohort import Client, Cohort
from privkit.train.local import Fleet
from tests import alone

CPU = torch.device("cpu")
D, C, ROUNDS, R = 128, 4, 6, 3
SIZES = (9, 14, 1, 5)  # a batch is of 4; the smallest takes 2 steps a round, 12 in all
RULE = ClippingRegularization(radius=1.2, weight=0.5, momentum=0.9, scaled=True, clamped=True, warm_up=5)
ENCODER = UspsCnn()


class Hooked(alone.After):
    """The published USPS network with an adapter hooked behind each of its convolutions, for one client."""

    def __init__(self, named: dict[str, np.ndarray]) -> None:
        super().__init__({name: p for name, p in named.items() if name.startswith("head.")})
        self.inner = nn.ModuleList(
            alone.Adapter(named[f"adapter.{i}.down"], named[f"adapter.{i}.up"]) for i in range(2)
        )
        self.frozen = ENCODER.module()
        for p in self.frozen.parameters():
            p.requires_grad_(False)
        self.drop: alone.Drop = alone.nothing

    def hook(self, block: int) -> Callable[..., Tensor]:
        """Return what puts an adapter behind pooling: it sees every position's channels."""

        def hooked(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
            channels_last = output.permute(0, 2, 3, 1)
            return self.inner[block](channels_last, self.drop).permute(0, 3, 1, 2)

        return hooked

    def embed(self, x: Tensor, drop: alone.Drop) -> Tensor:
        self.drop = drop
        pooled = iter(range(2))
        h = (x.float() / 255 - 0.2471) / 0.2994
        for convolution in (self.frozen.conv1, self.frozen.conv2):
            pool = nn.MaxPool2d(2)
            pool.register_forward_hook(self.hook(next(pooled)))
            h = pool(torch.relu(convolution(h)))
        z = self.frozen.hidden(h.flatten(1))
        return z / z.norm(dim=1, keepdim=True)

    def named(self) -> dict[str, Tensor]:
        found = alone.head_named(self.head)
        for i, adapter in enumerate(self.inner):
            assert isinstance(adapter, alone.Adapter)
            found |= alone.adapter_named(adapter, f"adapter.{i}.")
        return found


def _client(index: int, size: int) -> Client:
    rng = np.random.default_rng(index)
    x = rng.integers(0, 256, (size, 1, 16, 16)).astype(np.uint8)
    y = rng.integers(0, C, size)
    return Client(run=0, index=index, seed=3, x=x, y=y, x_test=x[:1], y_test=y[:1])


def fleet(model: PersonalModel, sizes: Sequence[int], rule: LocalRule) -> Fleet:
    cohort = Cohort.stack([_client(i, n) for i, n in enumerate(sizes)], CPU)
    network = model.build(ENCODER)
    assert isinstance(network, InsideNetwork)
    start = network.start(dim=D, num_classes=C, seed=3)
    params = {name: torch.from_numpy(np.stack([p] * len(sizes))) for name, p in start.items()}
    return Fleet.start(network, cohort, params, training=LocalTraining(), rule=rule)


def setup(rule: ClippingRegularization | None, *, dropout: float = 0.0) -> alone.Setup:
    rng = np.random.default_rng(99)
    prototypes = [torch.from_numpy(rng.standard_normal((C, D)).astype(np.float32)) for _ in range(ROUNDS)]
    present = torch.tensor([True, True, False, True])
    return alone.Setup(prototypes=prototypes, present=present, rule=rule, dropout=dropout, size=4, pull=20.0)


def trained(together: Fleet, how: alone.Setup) -> Fleet:
    training = LocalTraining(
        epochs=how.epochs,
        batch_size=how.size,
        learning_rate=how.learning_rate,
        weight_decay=how.weight_decay,
    )
    for round, prototypes in enumerate(how.prototypes):
        shared = {"prototypes": prototypes[None], "present": how.present[None]}
        down = Down(each={}, shared=shared, run_G=together.cohort.runs)
        together.train_round(round, FedProto(pull=how.pull, training=training), down)
    return together


@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("rule", [None, RULE], ids=["none", "published"])
@pytest.mark.parametrize("hidden", [(), (7,)])
def test_every_client_ends_where_hooks_on_a_network_of_its_own_bring_it(rule, hidden, dropout):
    model = PersonalModel(adapter=R, inside=True, hidden=hidden, dropout=dropout)
    how = setup(rule, dropout=dropout)
    together = trained(fleet(model, SIZES, rule or AsPublished()), how)
    start = model.build(ENCODER).start(dim=D, num_classes=C, seed=3)
    for g, client in enumerate(together.cohort.clients):
        module = Hooked(start)
        alone.train(module, client, how)
        wanted = module.named()
        assert sorted(wanted) == sorted(together.params)
        for name, p in wanted.items():
            torch.testing.assert_close(together.params[name][g], p, rtol=0, atol=1e-5)
        with torch.no_grad():
            z = module.embed(torch.from_numpy(client.x), alone.nothing).numpy()
        np.testing.assert_allclose(list(together.released(LocalOnly()))[g], z, atol=1e-5)
        assert np.abs(z - ENCODER.encode(client.x[:, 0])).max() > 1e-3
    assert together.optimizers[0].memory()["steps"]["all"].tolist() == sorted(
        (12 * -(-n // 4) for n in SIZES), reverse=True
    )


def test_the_backbone_stays_as_it_is_and_gets_no_gradient():
    together = fleet(PersonalModel(adapter=R, inside=True), SIZES, AsPublished())
    network = together.network
    assert isinstance(network, InsideNetwork)
    assert isinstance(network.staged, nn.Module)
    before = {name: p.clone() for name, p in network.staged.state_dict().items()}
    trained(together, setup(None))
    assert all(torch.equal(p, before[name]) for name, p in network.staged.state_dict().items())
    assert not any(p.requires_grad for p in network.staged.parameters())


def test_untrained_adapters_give_what_the_encoder_gives():
    """So what is known before training, and what the attacker owns, can be taken from cached features."""
    together = fleet(PersonalModel(adapter=R, inside=True), SIZES, AsPublished())
    x = together.cohort.x
    for z, client in zip(together.released(LocalOnly()), together.cohort.clients, strict=True):
        np.testing.assert_allclose(z, ENCODER.encode(client.x[:, 0]), atol=1e-6)
    flat = together.network.backbone(x).flatten(0, 1).numpy()
    np.testing.assert_allclose(flat, ENCODER.encode(x.flatten(0, 1)[:, 0].numpy()), atol=1e-6)


def test_a_client_is_the_same_whoever_is_beside_it():
    model, how = PersonalModel(adapter=R, inside=True, dropout=0.5), setup(RULE, dropout=0.5)
    together = trained(fleet(model, SIZES, RULE), how)
    single = trained(fleet(model, SIZES[:1], RULE), how)
    (g,) = [g for g, client in enumerate(together.cohort.clients) if client.index == 0]
    for name, p in single.params.items():
        torch.testing.assert_close(together.params[name][g], p[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("at_once", [1, 10])
def test_what_passes_the_backbone_at_once_changes_nothing_but_last_bits(monkeypatch, at_once):
    model, how = PersonalModel(adapter=R, inside=True, dropout=0.25), setup(RULE, dropout=0.25)
    whole = trained(fleet(model, SIZES, RULE), how)
    monkeypatch.setattr(InsideNetwork, "at_once", at_once)
    pieces = trained(fleet(model, SIZES, RULE), how)
    for name, p in whole.params.items():
        torch.testing.assert_close(pieces.params[name], p, rtol=0, atol=1e-5)
    for one, other in zip(whole.released(LocalOnly()), pieces.released(LocalOnly()), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_blocks_behind_a_projection_take_adapters_too():
    projected = Projected(encoder=ENCODER, output_dim=20, seed=1)
    network = PersonalModel(adapter=R, inside=True).build(projected)
    start = network.start(dim=20, num_classes=C, seed=0)
    assert start["adapter.0.down"].shape == (32, R)
    assert start["adapter.1.up"].shape == (R, 64)
    assert start["head.weight"].shape == (20, C)
    records = np.random.default_rng(0).integers(0, 256, (3, 16, 16)).astype(np.uint8)
    x = torch.from_numpy(projected.pixels(records))[None]
    params = {name: torch.from_numpy(p)[None] for name, p in start.items()}
    np.testing.assert_allclose(network.embed(params, x)[0].numpy(), projected.encode(records), atol=1e-5)


def test_a_black_box_takes_no_adapter_inside(tmp_path):
    black_box = Onnx(path=tmp_path / "model.onnx", output_dim=16, public_data="USPS")
    with pytest.raises(
        InputError,
        match=r"encoder onnx does not open its blocks, .*; put adapters after it \(model\.inside: false\), or",
    ):
        PersonalModel(adapter=2, inside=True).build(black_box)
    assert type(PersonalModel(adapter=2).build(black_box)) is Network
