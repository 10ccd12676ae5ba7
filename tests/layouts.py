"""Miniatures of public data sets, in the very bytes that their publishers use."""

import bz2
import gzip
import pickle
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

PACS = ("photo", "art_painting", "cartoon", "sketch")
OFFICE = ("amazon", "caltech", "dslr", "webcam")


def colour(seed: int, size: tuple[int, int] = (20, 12)) -> np.ndarray:
    """Return a smooth picture, uint8 of shape [height, width, 3]; every seed another."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (3, 3, 3), dtype=np.uint8))
    return np.asarray(coarse.resize(size, Image.Resampling.BILINEAR))


def picture(path: Path, seed: int = 0, size: tuple[int, int] = (20, 12)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(colour(seed, size)).save(path)
    return path


def class_folders(
    folder: Path, counts: Mapping[str, int], *, ending: str = ".jpg", seed: int = 0
) -> dict[str, list[Path]]:
    """Make class folders with so many pictures each, named as in PACS: ``pic_1``, ``pic_2``, …."""
    return {
        name: [
            picture(folder / name / f"pic_{i + 1}{ending}", seed=seed + 100 * place + i) for i in range(count)
        ]
        for place, (name, count) in enumerate(counts.items())
    }


def domain_folders(
    home: Path,
    domains: Iterable[str] = PACS,
    *,
    per_class: int = 3,
    classes: Iterable[str] = ("dog", "house"),
) -> Path:
    for place, domain in enumerate(domains):
        counts = dict.fromkeys(classes, per_class)
        class_folders(
            home / domain, counts, ending=(".jpg", ".JPG", ".png", ".jpeg")[place % 4], seed=1000 * place
        )
    return home


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def idx_bytes(array: np.ndarray) -> bytes:
    """Return an idx file of unsigned bytes: two zeros, 8, the number of dimensions, big-endian lengths, the values."""
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def idx_files(
    folder: Path, *, train: int = 20, test: int = 10, packed: bool = True, classes: int = 10
) -> dict[str, np.ndarray]:
    """Write MNIST's four files with balanced classes; return the images of both parts."""
    made = {}
    for part, count in (("train", train), ("t10k", test)):
        rng = np.random.default_rng(count)
        images = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        ending = ".gz" if packed else ""
        write(folder / f"{part}-images-idx3-ubyte{ending}", idx_bytes(images))
        write(folder / f"{part}-labels-idx1-ubyte{ending}", idx_bytes(np.arange(count) % classes))
        made[part] = images
    return made


def usps_line(label: int, values: np.ndarray) -> str:
    return " ".join([str(label), *(f"{i + 1}:{v:.4g}" for i, v in enumerate(values))])


def usps_files(folder: Path, *, train: int = 20, test: int = 10) -> dict[str, np.ndarray]:
    """Write USPS as libsvm does; return the values in [-1, 1] of both parts, four digits each."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, count in (("usps.bz2", train), ("usps.t.bz2", test)):
        values = np.random.default_rng(count).uniform(-1, 1, (count, 256)).round(3)
        lines = "".join(f"{usps_line(i % 10 + 1, row)} \n" for i, row in enumerate(values))
        (folder / name).write_bytes(bz2.compress(lines.encode()))
        made[name] = values
    return made


def svhn_files(folder: Path, *, train: int = 20, test: int = 10) -> dict[str, np.ndarray]:
    """Write SVHN's two MATLAB files, digit 0 as label 10; return the images, [32, 32, 3, N], of both."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, count in (("train_32x32.mat", train), ("test_32x32.mat", test)):
        images = np.random.default_rng(count).integers(0, 256, (32, 32, 3, count), dtype=np.uint8)
        labels = (np.arange(count) % 10 + 1).astype(np.uint8)[:, None]
        savemat(folder / name, {"X": images, "y": labels}, do_compression=True)
        made[name] = images
    return made


def fedbn_digits(folder: Path, shape: tuple[int, ...], *, per_part: int = 10, test: int = 10) -> None:
    """Write what FedBN's preparation script leaves: ten partitions and a test file."""
    (folder / "partitions").mkdir(parents=True, exist_ok=True)
    for part in range(10):
        dump(folder / "partitions" / f"train_part{part}.pkl", _digits(per_part, shape, seed=part))
    dump(folder / "test.pkl", _digits(test, shape, seed=99))


def _digits(count: int, shape: tuple[int, ...], *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    images = np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)
    return images, np.arange(count, dtype=np.int64) % 10


def dump(path: Path, value: object, *, protocol: int = pickle.HIGHEST_PROTOCOL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def python2_text(text: bytes) -> bytes:
    """Return a ``str`` as Python 2 pickles it."""
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<I", len(text)) + text


def python2_numbers(numbers: Iterable[int]) -> bytes:
    return b"](" + b"".join(b"K" + bytes([number]) for number in numbers) + b"e"


def python2_bytes_array(array: np.ndarray) -> bytes:
    """Return a two-dimensional array of uint8 as numpy 1 under Python 2 pickles it."""
    rows, columns = (b"J" + struct.pack("<i", length) for length in array.shape)
    kind = b"cnumpy\ndtype\n(" + python2_text(b"u1") + b"K\x00K\x01tR(K\x03" + python2_text(b"|")
    kind += b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + python2_text(b"b") + b"tR"
    return made + b"(K\x01(" + rows + columns + b"t" + kind + b"\x89" + python2_text(array.tobytes()) + b"tb"


def python2_dict(items: Mapping[bytes, bytes]) -> bytes:
    """Return a dict of parts that are pickled already, as protocol 2 has it."""
    return b"\x80\x02}(" + b"".join(python2_text(key) + value for key, value in items.items()) + b"u."


class RunsCode:
    """What an attacker puts into a pickle: opening it would make a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple:
        return (Path.touch, (self.target,))


def cifar_values(count: int, *, seed: int) -> np.ndarray:
    """Return pictures as CIFAR stores them: uint8 of shape [count, 3072], red, then green, then blue."""
    return np.random.default_rng(seed).integers(0, 256, (count, 3072), dtype=np.uint8)


def cifar10_pickles(folder: Path, *, count: int = 20) -> None:
    """Write the six batches as Python 2 pickled them; batch i is made of ``cifar_values(count, seed=i)``."""
    for seed, name in enumerate(["test_batch", *(f"data_batch_{i}" for i in range(1, 6))]):
        parts = {
            b"batch_label": python2_text(name.encode()),
            b"labels": python2_numbers([i % 10 for i in range(count)]),
            b"data": python2_bytes_array(cifar_values(count, seed=seed)),
        }
        write(folder / name, python2_dict(parts))


def cifar10_binary(folder: Path, *, count: int = 20) -> None:
    """Write the same six batches as bytes: a label, then the picture."""
    for seed, name in enumerate(["test_batch", *(f"data_batch_{i}" for i in range(1, 6))]):
        labels = (np.arange(count) % 10).astype(np.uint8)[:, None]
        write(folder / f"{name}.bin", np.hstack([labels, cifar_values(count, seed=seed)]).tobytes())


def cifar100_pickles(folder: Path, *, count: int = 200) -> None:
    """Write the two files as Python 2 pickled them; record i has class i and group i, modulo 100 and 20."""
    for seed, name in enumerate(["test", "train"]):
        parts = {
            b"data": python2_bytes_array(cifar_values(count, seed=seed)),
            b"coarse_labels": python2_numbers([i % 20 for i in range(count)]),
            b"fine_labels": python2_numbers([i % 100 for i in range(count)]),
        }
        write(folder / name, python2_dict(parts))


def cifar100_binary(folder: Path, *, count: int = 200) -> None:
    """Write the same two files as bytes: group, class, then the picture."""
    for seed, name in enumerate(["test", "train"]):
        labels = np.stack([np.arange(count) % 20, np.arange(count) % 100], axis=1).astype(np.uint8)
        write(folder / f"{name}.bin", np.hstack([labels, cifar_values(count, seed=seed)]).tobytes())
