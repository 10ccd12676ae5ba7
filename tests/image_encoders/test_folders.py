"""Any ViT or ResNet in a folder gives what its library gives, with the settings of the folder."""

import json
import sys
from collections.abc import Callable
from logging import WARNING
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from privkit import plug
from privkit.errors import InputError
from privkit.models import _pixels
from privkit.models._pixels import Reading
from privkit.models.hf_image import HfImage
from tests.image_encoders.made import COLOUR, as_floats, close, vit_folder


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
        (
            {"hidden_size": 26},
            r"embeddings\.cls_token has shape \[1, 1, 24\], and its config\.json asks for \[1, 1, 26\]; give the",
        ),
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
