"""Models of timm give what timm gives."""

import importlib
import sys
from pathlib import Path

import pytest
import torch

from privkit.errors import InputError
from privkit.models.timm_image import TimmImage
from tests.image_encoders.made import COLOUR, as_floats, close


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
