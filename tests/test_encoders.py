"""The shipped encoder does what its source did, and any ONNX model can take its place."""

import hashlib
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from sklearn.linear_model import LogisticRegression

from privkit import plug
from privkit.data._base import Domain
from privkit.data.digits import Digits
from privkit.errors import InputError
from privkit.models import usps_cnn
from privkit.models.onnx import Onnx
from privkit.models.usps_cnn import UspsCnn

GOLDEN = json.loads((Path(__file__).parent / "golden" / "usps_cnn.json").read_text())


@pytest.fixture(scope="module")
def domains() -> tuple[Domain, ...]:
    return Digits(per_class=150).load()


@pytest.fixture(scope="module")
def features(domains) -> dict[str, np.ndarray]:
    return {domain.name: UspsCnn().encode(domain.records) for domain in domains}


def golden_images() -> np.ndarray:
    k, row, column = np.ogrid[:2, :16, :16]
    return ((53 * k + 17 * row + 29 * column) % 256).astype(np.uint8)


def test_encode_gives_what_the_published_network_gives():
    vectors = UspsCnn(normalize=False).encode(golden_images())
    assert vectors == pytest.approx(np.array(GOLDEN["features"]), abs=2e-5)


def test_normalize_gives_length_one_in_the_same_direction():
    plain, unit = (UspsCnn(normalize=choice).encode(golden_images()) for choice in (False, True))
    assert np.linalg.norm(unit, axis=1) == pytest.approx(1, abs=1e-6)
    assert unit == pytest.approx(plain / np.linalg.norm(plain, axis=1, keepdims=True), abs=1e-6)


def test_a_vector_does_not_depend_on_its_batch(domains, features):
    encoder = UspsCnn()
    alone = np.concatenate([encoder.encode(domains[1].records[i : i + 1]) for i in (0, 511, 512, 1499)])
    assert alone == pytest.approx(features["optdigits"][[0, 511, 512, 1499]], abs=1e-6)


def test_shapes_and_types(features):
    assert UspsCnn().dim == 128
    assert features["mnist"].shape == (1500, 128)
    assert features["mnist"].dtype == np.float32
    assert UspsCnn().encode(np.empty((0, 16, 16), np.uint8)).shape == (0, 128)


@pytest.mark.parametrize(
    # measured on these very splits: .960, .988, .952, .980; chance is .10
    ("name", "at_least"),
    [("mnist", 0.92), ("optdigits", 0.95), ("pendigits", 0.91), ("syn", 0.92)],
)
def test_features_carry_the_digit(domains, features, name, at_least):
    assert accuracy(domains, features, name, name) >= at_least


@pytest.mark.parametrize(
    # measured: .524, .590, .464
    ("train", "test"),
    [("mnist", "pendigits"), ("optdigits", "mnist"), ("pendigits", "syn")],
)
def test_domains_differ(domains, features, train, test):
    assert 0.25 < accuracy(domains, features, train, test) < 0.75


def accuracy(domains, features, train: str, test: str) -> float:
    """Return the share a logistic regression on 1000 of one domain gets right of 500 of another."""
    labels = {domain.name: domain.labels for domain in domains}
    model = LogisticRegression(C=100, max_iter=1000)
    model.fit(features[train][:1000], labels[train][:1000])
    return float(model.score(features[test][1000:], labels[test][1000:]))


def test_module_passes_gradients_and_has_no_mode():
    net = UspsCnn().module()
    images = torch.from_numpy(golden_images() / np.float32(255))[:, None].requires_grad_()
    out = net(images)
    out[:, 0].sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0
    assert all(weight.grad is not None for weight in net.parameters())
    assert torch.equal(net.train()(images), out)
    assert out.detach().numpy() == pytest.approx(UspsCnn().encode(golden_images()), abs=1e-6)


def test_every_module_is_a_new_one():
    first, second = UspsCnn().module(), UspsCnn().module()
    with torch.no_grad():
        first.hidden.bias.zero_()
    assert second.hidden.bias.abs().sum() > 0


def test_fingerprint_is_the_hash_of_the_weights():
    content = usps_cnn.WEIGHTS.read_bytes()
    assert UspsCnn().fingerprint == hashlib.sha256(content).hexdigest()
    assert "USPS" in UspsCnn().trained_on


def test_damaged_weights_are_refused(tmp_path, monkeypatch):
    copy = tmp_path / "usps_cnn.safetensors"
    copy.write_bytes(usps_cnn.WEIGHTS.read_bytes()[:-1] + b"\x00")
    monkeypatch.setattr(usps_cnn, "WEIGHTS", copy)
    with pytest.raises(InputError, match=r"usps_cnn\.safetensors is damaged"):
        UspsCnn().encode(golden_images())


def test_another_image_size_is_refused():
    with pytest.raises(InputError, match="16 x 16, not 28 x 20; resize"):
        UspsCnn().encode(np.zeros((1, 28, 20), np.uint8))


def test_plug_ins_are_found_without_torch():
    code = (
        "import sys; from privkit import plug; plug.build('privkit.models', 'usps_cnn');"
        "print(*dict(plug.every('privkit.models')));"
        "print({'torch', 'onnxruntime', 'transformers', 'PIL'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, loaded = done.stdout.splitlines()
    assert {"usps_cnn", "onnx", "efficientnet_lite0", "hf_image", "hf_text", "minilm"} <= set(names.split())
    assert loaded == "set()"


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """Return the shipped encoder as an ONNX file with an open batch length."""
    path = tmp_path_factory.mktemp("onnx") / "usps.onnx"
    with warnings.catch_warnings():
        # the exporter that needs no onnxscript is deprecated; shape checks look at what it traces
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", message="Converting a tensor to a Python")
        torch.onnx.export(
            UspsCnn().module(),
            (torch.zeros(1, 1, 16, 16),),
            path,
            dynamo=False,
            input_names=["images"],
            output_names=["vectors"],
            dynamic_axes={"images": {0: "N"}, "vectors": {0: "N"}},
        )
    return path


def test_onnx_gives_what_torch_gives(exported, domains, features):
    encoder = Onnx(path=exported, output_dim=128, public_data="USPS")
    assert encoder.encode(domains[3].records) == pytest.approx(features["syn"], abs=1e-5)
    assert encoder.encode(np.empty((0, 16, 16), np.uint8)).shape == (0, 128)
    assert (encoder.dim, encoder.trained_on) == (128, "USPS")
    assert encoder.fingerprint == hashlib.sha256(exported.read_bytes()).hexdigest()


def test_onnx_settings_come_back(exported):
    settings = {"name": "onnx", "path": str(exported), "output_dim": 128, "public_data": "USPS"}
    encoder = plug.build("privkit.models", settings)
    assert plug.build("privkit.models", encoder.settings()) == encoder


def test_onnx_of_another_width_is_refused(exported):
    encoder = Onnx(path=exported, output_dim=64, public_data="USPS")
    with pytest.raises(
        InputError, match=r"gives \[2, 128\] for 2 images, not output_dim=64 numbers each; set"
    ):
        encoder.encode(golden_images())


def test_onnx_of_another_image_size_is_refused(exported):
    encoder = Onnx(path=exported, output_dim=128, public_data="USPS")
    with pytest.raises(InputError, match=r"usps\.onnx reads .* wanted .*\[N, 1, 28, 28\]"):
        encoder.encode(np.zeros((2, 28, 28), np.uint8))


def flat_model(path: Path, shape: list, *, kind: int = TensorProto.FLOAT, last: str = "Identity") -> Path:
    """Write a model that flattens its input and applies one more operation."""
    source = helper.make_tensor_value_info("x", kind, shape)
    target = helper.make_tensor_value_info("y", kind, ["N", "D"])
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node(last, ["flat"], ["y"])]
    graph = helper.make_graph(nodes, "flat", [source], [target])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)
    return path


def test_scale_and_shift_are_applied_to_grey_levels(tmp_path):
    path = flat_model(tmp_path / "flat.onnx", ["N", 1, "H", "W"])
    images = np.array([[[0, 255], [51, 102]]], np.uint8)
    plain = Onnx(path=path, output_dim=4, public_data="nothing")
    assert plain.encode(images) == pytest.approx(np.array([[0, 1, 0.2, 0.4]]), abs=1e-6)
    moved = Onnx(path=path, output_dim=4, public_data="nothing", scale=2 / 255, shift=-1)
    assert moved.encode(images) == pytest.approx(np.array([[-1, 1, -0.6, -0.2]]), abs=1e-6)


def test_long_input_is_cut_into_batches_and_joined_in_order(tmp_path):
    path = flat_model(tmp_path / "flat.onnx", ["N", 1, 1, 1])
    images = (np.arange(1100) % 251).astype(np.uint8).reshape(-1, 1, 1)
    encoder = Onnx(path=path, output_dim=1, public_data="nothing", scale=1)
    assert np.array_equal(encoder.encode(images)[:, 0], images[:, 0, 0])


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        (["N", 3, 2, 2], TensorProto.FLOAT),
        (["N", 2, 2], TensorProto.FLOAT),
        ([4, 1, 2, 2], TensorProto.FLOAT),
        (["N", 1, 2, 2], TensorProto.DOUBLE),
    ],
)
def test_a_model_that_reads_something_else_is_refused(tmp_path, shape, kind):
    path = flat_model(tmp_path / "flat.onnx", shape, kind=kind)
    with pytest.raises(InputError, match=r"flat\.onnx reads tensor"):
        Onnx(path=path, output_dim=4, public_data="nothing").encode(np.zeros((1, 2, 2), np.uint8))


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    path = flat_model(tmp_path / "log.onnx", ["N", 1, 2, 2], last="Log")
    encoder = Onnx(path=path, output_dim=4, public_data="nothing")
    assert encoder.encode(np.full((1, 2, 2), 255, np.uint8)) == pytest.approx(0)
    with pytest.raises(InputError, match="not finite; check scale and shift"):
        encoder.encode(np.zeros((1, 2, 2), np.uint8))


def test_a_file_that_is_no_model_is_refused(tmp_path):
    path = tmp_path / "wrong.onnx"
    with pytest.raises(InputError, match=r"wrong\.onnx' is no file; give an ONNX model"):
        Onnx(path=path, output_dim=4, public_data="nothing").encode(golden_images())
    path.write_bytes(b"not a model")
    with pytest.raises(InputError, match=r"wrong\.onnx' cannot be read as an ONNX model"):
        Onnx(path=path, output_dim=4, public_data="nothing").encode(golden_images())


COLOUR = np.arange(2 * 2 * 3 * 3, dtype=np.uint8).reshape(2, 2, 3, 3)


def test_onnx_reads_colour_and_resizes(tmp_path):
    path = flat_model(tmp_path / "flat.onnx", ["N", 3, "H", "W"])
    flat = Onnx(path=path, output_dim=18, public_data="nothing", channels=3, scale=1)
    assert np.array_equal(flat.encode(COLOUR), COLOUR.transpose(0, 3, 1, 2).reshape(2, 18))
    grey = np.repeat(COLOUR[:, None, :, :, 0], 3, axis=1).reshape(2, 18)
    assert np.array_equal(flat.encode(COLOUR[..., 0]), grey)
    small = Onnx(path=path, output_dim=12, public_data="nothing", channels=3, side=2, scale=1)
    plain = np.full((1, 5, 7, 3), [10, 20, 30], np.uint8)
    assert np.array_equal(small.encode(plain)[0], np.repeat([10, 20, 30], 4))


def test_onnx_reads_colour_as_grey_where_the_model_does(tmp_path):
    path = flat_model(tmp_path / "flat.onnx", ["N", 1, "H", "W"])
    encoder = Onnx(path=path, output_dim=6, public_data="nothing", scale=1)
    luma = COLOUR @ np.array([0.299, 0.587, 0.114])
    assert encoder.encode(COLOUR) == pytest.approx(luma.reshape(2, 6), abs=0.51)


def test_onnx_scales_and_shifts_each_colour(tmp_path):
    path = flat_model(tmp_path / "flat.onnx", ["N", 3, "H", "W"])
    settings = {
        "name": "onnx",
        "path": str(path),
        "output_dim": 18,
        "public_data": "nothing",
        "channels": 3,
        "scale": [1.0, 2.0, 3.0],
        "shift": [0.0, -1.0, 5.0],
    }
    encoder = plug.build("privkit.models", settings)
    assert isinstance(encoder, Onnx)
    expected = COLOUR * np.array([1, 2, 3]) + np.array([0, -1, 5])
    assert encoder.encode(COLOUR) == pytest.approx(expected.transpose(0, 3, 1, 2).reshape(2, 18))
    assert plug.build("privkit.models", encoder.settings()) == encoder
    with pytest.raises(
        InputError, match="scale and shift of grey images are one number each; give channels: 3"
    ):
        plug.build("privkit.models", settings | {"channels": 1})


def test_onnx_refuses_what_its_model_does_not_read(tmp_path):
    path = flat_model(tmp_path / "flat.onnx", ["N", 3, 4, 4])
    encoder = Onnx(path=path, output_dim=48, public_data="nothing", channels=3)
    with pytest.raises(
        InputError, match=r"wanted is float32 \[N, 3, 2, 3\] .*; set channels and side to what"
    ):
        encoder.encode(COLOUR)
    assert encoder.model_copy(update={"side": 4}).encode(COLOUR).shape == (2, 48)
    with pytest.raises(
        InputError, match="encoder onnx reads images, and these records are sentences; take one"
    ):
        encoder.encode(np.array(["a cat"]))


def test_missing_onnxruntime_names_the_way_out(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(InputError, match=r"pip install 'privkit-audit\[onnx\]'"):
        Onnx(path=exported, output_dim=128, public_data="USPS").encode(golden_images())
