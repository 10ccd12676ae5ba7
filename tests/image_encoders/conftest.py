"""Tiny models, and no network."""

import socket

import pytest

from privkit.models._torch_image import TorchImageEncoder
from privkit.models.efficientnet_lite0 import EfficientnetLite0
from privkit.models.hf_image import HfImage
from tests.image_encoders.made import resnet_folder, vit_folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be downloaded."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("something was looked up on the network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


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
