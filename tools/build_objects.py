"""Make the stored objects again, from packages anyone can download.

Run ``pip install resvg-py==0.5.0`` and ``python tools/build_objects.py --out FOLDER`` in a checkout with privkit
installed. Sources, taken with ``npm pack`` (no code of theirs is run) and refused if their bytes differ:

====================  ========================================  ======================================
domain                package                                   what is drawn
====================  ========================================  ======================================
fluent-3d             @lobehub/fluent-emoji-3d 1.1.0            256 x 256 pictures, as published
noto                  @iconify-json/noto 1.2.9                  vector drawings
twemoji               @iconify-json/twemoji 1.2.5               vector drawings
fluent-high-contrast  @iconify-json/fluent-emoji-high-contrast  vector drawings
                      1.2.6
(labels)              emojibase-data 17.0.0                     Unicode's subgroup and name of an emoji
====================  ========================================  ======================================

A concept is an emoji that all four draw and whose subgroup is one of ``SUBGROUPS``: 650. Those whose drawing is, in
any of the four, that of an earlier one (in Unicode's order) are left out and named.

The stored files were made with Python 3.11.7, numpy 2.4.6, pillow 13.0.0 (libwebp 1.6.0) and resvg-py 0.5.0. Another
libwebp may compress the same pixels to other bytes: then compare the pixels. Compressing takes two minutes.
"""

import argparse
import csv
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from object_drawings import EmojiSet, Pictures, Vectors, content, plain
from PIL import Image

from privkit.data.objects import CLASSES, COLUMNS, SIDE, Concept

SEED = 20260101
SAME = 2.0  # grey levels, root mean square: drawings closer than this are one drawing

SUBGROUPS = {
    "animal": (
        "animal-mammal",
        "animal-bird",
        "animal-amphibian",
        "animal-reptile",
        "animal-marine",
        "animal-bug",
    ),
    "building": ("place-building", "place-religious"),
    "clothing": ("clothing",),
    "face": (
        "face-smiling",
        "face-affection",
        "face-tongue",
        "face-hand",
        "face-neutral-skeptical",
        "face-sleepy",
        "face-unwell",
        "face-hat",
        "face-glasses",
        "face-concerned",
        "face-negative",
        "face-costume",
    ),
    "food": ("food-fruit", "food-vegetable", "food-prepared", "food-asian", "food-sweet"),
    "person": ("person", "person-role", "person-sport"),
    "vehicle": ("transport-ground", "transport-water", "transport-air"),
}

EMOJIBASE = "emojibase-data@17.0.0"
SOURCES = {
    "fluent-3d": "@lobehub/fluent-emoji-3d@1.1.0",
    "noto": "@iconify-json/noto@1.2.9",
    "twemoji": "@iconify-json/twemoji@1.2.5",
    "fluent-high-contrast": "@iconify-json/fluent-emoji-high-contrast@1.2.6",
}
SHA256 = {
    EMOJIBASE: "d01d0e2ca4e22cb402679532155342c71e2e871f25c32223c013b8b166ebdf5a",
    SOURCES["fluent-3d"]: "c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58",
    SOURCES["noto"]: "3e918d88fc945c0bb3d468dbace6f88caef67f01c9f0e7bcae0915a042e8f1ad",
    SOURCES["twemoji"]: "19046dff7d8707ce96212ec86468b36ac5f8e60409629dd13f809265c6d0ebb7",
    SOURCES["fluent-high-contrast"]: "0b92d48c90d2200bd499e3cdd09a127ca6a8c8ddefd34c35eb5a1e4994012ae0",
}


def tarball(folder: Path, package: str) -> tarfile.TarFile:
    """Return a package's files, if they have the known hash; it is downloaded if it is not in the folder."""
    name, _, version = package.rpartition("@")
    path = folder / f"{name.removeprefix('@').replace('/', '-')}-{version}.tgz"
    if not path.is_file():
        subprocess.run(
            ["npm", "pack", "--silent", package], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256[package]:
        raise ValueError(f"{path} has sha256 {found}, wanted {SHA256[package]}.")
    return tarfile.open(path)


def listed(labels: tarfile.TarFile) -> list[Concept]:
    """Return every emoji of the wanted subgroups, in Unicode's order."""
    numbers = json.loads(content(labels, "package/meta/groups.json"))["subgroups"]
    kinds = {name: kind for kind, names in SUBGROUPS.items() for name in names}
    emojis = json.loads(content(labels, "package/en/data.json"))
    grouped = sorted((emoji for emoji in emojis if "subgroup" in emoji), key=lambda emoji: emoji["order"])
    return [
        Concept(kinds[subgroup], emoji["hexcode"], emoji["label"])
        for emoji in grouped
        if (subgroup := numbers[str(emoji["subgroup"])]) in kinds
    ]


def distinct(drawings: list[np.ndarray]) -> list[int]:
    """Return the rows whose drawing is, in no style, that of an earlier row that is kept."""
    far = np.ones((len(drawings[0]), len(drawings[0])), bool)
    for images in drawings:
        pixels = images.reshape(len(images), -1).astype(np.float64)
        squares = (pixels**2).sum(1)
        gaps = squares[:, None] + squares - 2 * pixels @ pixels.T  # whole numbers below 2**53: exact
        far &= gaps >= SAME**2 * pixels.shape[1]
    kept: list[int] = []
    for row in range(len(far)):
        if far[row, kept].all():
            kept.append(row)
    return kept


def sheet(images: np.ndarray) -> np.ndarray:
    """Return the images as one, row by row, white where the last row is not full."""
    rows = -(-len(images) // COLUMNS)
    tiles = np.full((rows * COLUMNS, SIDE, SIDE, 3), 255, np.uint8)
    tiles[: len(images)] = images
    return tiles.reshape(rows, COLUMNS, SIDE, SIDE, 3).swapaxes(1, 2).reshape(rows * SIDE, COLUMNS * SIDE, 3)


def table(concepts: list[Concept]) -> bytes:
    """Return the concepts as comma-separated text."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(vars(concepts[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(vars(concept) for concept in concepts)
    return text.getvalue().encode()


def webp(pixels: np.ndarray) -> bytes:
    """Return pixels as lossless WebP."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "WEBP", lossless=True, quality=100, method=6)
    return file.getvalue()


def write(path: Path, data: bytes) -> None:
    """Write a file and say its size and hash."""
    path.write_bytes(data)
    say(f"{path.name}: {len(data)} bytes {hashlib.sha256(data).hexdigest()}")


def say(line: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{line}\n")


def build(folder: Path, out: Path) -> None:
    """Write one sheet per domain and the list of concepts; say what was left out."""
    sets: dict[str, EmojiSet] = {
        name: (Pictures if name == "fluent-3d" else Vectors)(tarball(folder, package))
        for name, package in SOURCES.items()
    }
    concepts = [
        concept
        for concept in listed(tarball(folder, EMOJIBASE))
        if all(plain(concept.hexcode) in emoji_set for emoji_set in sets.values())
    ]
    drawings = {
        name: np.stack([emoji_set.draw(plain(concept.hexcode), SIDE) for concept in concepts])
        for name, emoji_set in sets.items()
    }
    kept = distinct(list(drawings.values()))
    left_out = [concept.name for row, concept in enumerate(concepts) if row not in set(kept)]
    say(f"{len(concepts)} concepts in all four; drawn like another: {', '.join(left_out)}")
    order = np.random.default_rng(SEED).permutation(kept)
    counts = Counter(concepts[row].kind for row in order)
    say(f"{len(order)} concepts stored: {', '.join(f'{kind} {counts[kind]}' for kind in CLASSES)}")
    out.mkdir(parents=True, exist_ok=True)
    write(out / "concepts.csv", table([concepts[row] for row in order]))
    for name, images in drawings.items():
        write(out / f"{name}.webp", webp(sheet(images[order])))


def main() -> None:
    """Read the command line and build."""
    parser = argparse.ArgumentParser(description="Make the stored objects again.")
    parser.add_argument("--out", type=Path, required=True, help="folder for the sheets and the list")
    parser.add_argument(
        "--packages", type=Path, help="folder for the five packages, or that holds them already"
    )
    options = parser.parse_args()
    if options.packages:
        build(options.packages, options.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), options.out)


if __name__ == "__main__":
    main()
