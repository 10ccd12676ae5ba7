"""Maps between embedding and head: what all keep to, how many numbers each has, and the model that one is part of."""

import json

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from privkit import cite, plug
from privkit.cayley import cayley
from privkit.errors import InputError
from privkit.network import Network
from privkit.personal import PersonalModel
from privkit.transforms._base import AbstractTransform
from tests.test_cayley import dense, drawn

PACKAGE = "privkit.transforms"
NAMES = plug.names(PACKAGE)
G, B, D, C = 3, 7, 12, 4


def built(name: str, **settings: int) -> AbstractTransform:
    found = plug.build(PACKAGE, {"name": name, **settings})
    assert isinstance(found, AbstractTransform)
    return found


def model(transform: AbstractTransform | None, **settings: object) -> PersonalModel:
    return PersonalModel.model_validate({"transform": transform, **settings})


def stacked(network: Network, seed: int = 0, size: float = 0.0) -> dict[str, torch.Tensor]:
    """Return parameters of every client, float64, moved from the start by noise of some size."""
    start = network.start(dim=D, num_classes=C, seed=seed)
    return {
        n: torch.from_numpy(np.stack([p.astype(np.float64)] * G)) + size * drawn((G, *p.shape), i)
        for i, (n, p) in enumerate(start.items())
    }


every = pytest.mark.parametrize("name", NAMES)


def test_all_maps_are_there():
    assert set(NAMES) == {"gate", "linear", "rotation"}


@every
def test_a_map_is_its_settings_says_what_they_are_and_cites(name):
    transform = built(name)
    assert plug.build(PACKAGE, json.loads(json.dumps(transform.settings()))) == transform
    assert all(field.description for field in type(transform).model_fields.values())
    assert cite.cited(type(transform))
    assert transform.in_words


@every
def test_clients_are_each_alone(name):
    network = Network(model(built(name)))
    params, h = stacked(network, size=0.3), drawn((G, B, D), 9)
    whole = network.embed(params, h)
    for g in range(G):
        mine = {n: p[g : g + 1] for n, p in params.items()}
        torch.testing.assert_close(network.embed(mine, h[g : g + 1])[0], whole[g], rtol=1e-10, atol=1e-12)


@every
def test_every_parameter_is_the_maps_or_the_heads_and_learns(name):
    network = Network(model(built(name), temperature=5.0))
    params = {n: p.requires_grad_(True) for n, p in stacked(network, size=0.3).items()}
    network.logits(params, network.embed(params, drawn((G, B, D), 9)))[..., 0].sum().backward()
    for n, p in params.items():
        assert n.startswith(("transform.", "head."))
        assert p.grad is not None
        assert p.grad.abs().amax(tuple(range(1, p.ndim))).min() > 0 or n == "transform.second.bias"


@pytest.mark.parametrize(
    "transform", [built("rotation"), built("rotation", blocks=4), built("linear")], ids=lambda t: t.in_words
)
def test_maps_with_a_matrix_begin_as_the_identity_and_apply_it(transform):
    network, h = Network(model(transform)), drawn((G, B, D), 9)
    assert torch.equal(network.embed(stacked(network), h), h)
    params = stacked(network, size=0.3)
    named = {n.removeprefix("transform."): p for n, p in params.items()}
    blocks_Grbb = transform.matrix(named)
    for g in range(G):
        torch.testing.assert_close(network.embed(params, h)[g], h[g] @ dense(blocks_Grbb[g]).mT)


def test_a_gate_weighs_coordinates_and_begins_almost_even():
    network, h = Network(model(built("gate"))), drawn((G, B, D), 9)
    gated = network.embed(stacked(network), h)
    weights = gated / h
    torch.testing.assert_close(weights.sum(-1), torch.ones(G, B).double())
    assert weights.min() > 0
    assert torch.cosine_similarity(gated, h, dim=-1).min() > 0.8
    assert built("gate").matrix({}) is None


# ---------------------------------------------------------------------- counts, of width 512


@pytest.mark.parametrize(
    ("blocks", "free"),
    [(1, 130_816), (2, 65_280), (4, 32_512), (8, 16_128), (16, 7_936), (32, 3_840), (64, 1_792), (512, 0)],
)
def test_a_rotation_has_as_many_numbers_and_freedoms_as_it_says(blocks, free):
    (x,) = built("rotation", blocks=blocks).start(np.random.default_rng(0), 512).values()
    assert x.size == 512 * 512 // blocks
    width = 512 // blocks
    assert blocks * width * (width - 1) // 2 == 512 * (width - 1) // 2 == free


@pytest.mark.parametrize("classes", [5, 7, 10, 62, 65])
def test_a_head_at_a_temperature_has_one_number_per_class_and_coordinate(classes):
    head = Network(model(None, temperature=10.0)).start(dim=512, num_classes=classes, seed=0)
    assert {name: p.shape for name, p in head.items()} == {"head.vectors": (512, classes)}


def test_the_other_maps_have_as_many_numbers_as_published():
    rng = np.random.default_rng(0)
    assert sum(p.size for p in built("linear").start(rng, 512).values()) == 262_144
    assert sum(p.size for p in built("gate").start(rng, 512).values()) == 525_312


# ---------------------------------------------------------------------- the head at a temperature


def test_a_head_at_a_temperature_is_that_of_the_paper():
    network = Network(model(built("rotation"), temperature=7.0))
    params, h = stacked(network, size=0.3), drawn((G, B, D), 9)
    moved = network.embed(params, h)
    wanted = 7.0 * torch.einsum(
        "gbd,gdc->gbc", moved / moved.norm(dim=-1, keepdim=True), params["head.vectors"]
    )
    torch.testing.assert_close(network.logits(params, moved), wanted)
    torch.testing.assert_close(network.logits(params, 100 * moved), wanted)


@pytest.mark.parametrize("transform", [None, *map(built, NAMES)], ids=lambda t: t.name if t else "none")
def test_an_embedding_of_zeros_has_logits_of_zero_and_moves_nothing(transform):
    network = Network(model(transform, temperature=7.0))
    params = {n: p.requires_grad_(True) for n, p in stacked(network, size=0.3).items()}
    logits = network.logits(params, network.embed(params, torch.zeros(G, 1, D).double()))
    assert (logits == 0).all()
    found = torch.autograd.grad(logits.logsumexp(-1).sum(), list(params.values()), allow_unused=True)
    assert all(g is None or (g == 0).all() for g in found)


def test_all_heads_behind_rotations_have_one_gram_matrix():
    """P2: only the orientation is personal."""
    network = Network(model(built("rotation"), temperature=7.0))
    params = stacked(network, size=0.5)
    head_Cd = params["head.vectors"][0].mT
    for g in range(G):
        effective = head_Cd @ dense(cayley(params["transform.x"][g]))
        torch.testing.assert_close(effective @ effective.mT, head_Cd @ head_Cd.mT)
        assert (effective - head_Cd).abs().max() > 0.1


def test_turning_the_head_and_every_map_alike_is_seen_by_no_client():
    """P4: the gauge, which only somebody without a map of its own sees."""
    head, h = drawn((C, D), 0), drawn((B, D), 1)
    turn, maps = cayley(drawn((D, D), 2)), [cayley(drawn((D, D), 3 + i)) for i in range(3)]
    for q in maps:
        torch.testing.assert_close(h @ (head @ turn.mT @ (turn @ q)).mT, h @ (head @ q).mT)
    assert (h @ (head @ turn.mT).mT - h @ head.mT).abs().max() > 0.1


# ---------------------------------------------------------------------- settings


def test_settings_of_models_without_a_map_are_what_they_were():
    assert PersonalModel(adapter=3).model_dump(mode="json") == {
        "adapter": 3, "inside": False, "hidden": [], "dropout": 0.0,
    }  # fmt: skip


def test_a_model_with_a_map_is_read_back_from_its_settings():
    wanted = model(built("rotation", blocks=4), temperature=10.0, first_head="records")
    plain = json.loads(json.dumps(wanted.model_dump(mode="json")))
    assert PersonalModel.model_validate(plain) == wanted
    assert plain["transform"] == {"name": "rotation", "blocks": 4}
    assert (
        wanted.placement == "rotation in 4 blocks after the frozen backbone, trained head at temperature 10"
    )
    assert wanted.encoder_depends_on is PersonalModel(adapter=1).encoder_depends_on


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"adapter": 3, "transform": "rotation"}, "keep one"),
        ({"hidden": [4], "temperature": 1.0}, "leave out hidden"),
        ({"hidden": [4], "first_head": "records"}, "leave out hidden"),
        ({"temperature": 0.0}, "greater than 0"),
        ({"transform": {"name": "rotation", "blocks": 0}}, "greater than or equal to 1"),
        ({"transform": "rotatoin"}, "rotation"),
    ],
)
def test_settings_that_make_no_model_are_refused(settings, said):
    with pytest.raises((ValidationError, InputError), match=said):
        PersonalModel.model_validate(settings)


def test_blocks_that_do_not_divide_a_width_are_refused_with_some_that_do():
    with pytest.raises(InputError, match=r"5 blocks do not divide embeddings of width 12; .* such as 4"):
        Network(model(built("rotation", blocks=5))).start(dim=12, num_classes=2, seed=0)
