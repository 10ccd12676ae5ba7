"""Printed digits over photographs: matplotlib's faces, scikit-learn's two sample pictures."""

from functools import cache
from pathlib import Path as FilePath

import matplotlib
import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D
from sklearn.datasets import load_sample_images

SIDE = 16
FINE = 4  # points per pixel and axis where the outline is tested
LEVELS = 15
LUMA = np.array([0.299, 0.587, 0.114])

# Faces whose digits are missing, not upright text, or only parts of symbols.
UNUSABLE = ("Display", "STIXSiz", "STIXNonUni", "cmex", "cmsy", "cmmi", "LastResort")


def faces() -> list[FilePath]:
    """Return the usable font files that come with matplotlib, by name; 21 of them."""
    folder = FilePath(matplotlib.get_data_path()) / "fonts" / "ttf"
    files = sorted(folder.glob("*.ttf"))
    return [file for file in files if not any(part in file.name for part in UNUSABLE)]


@cache
def outline(face: FilePath, digit: int) -> TextPath:
    """Return the outline of one digit, unhinted."""
    return TextPath((0, 0), str(digit), size=100, prop=FontProperties(fname=face))


def ink(face: FilePath, digit: int, rng: np.random.Generator) -> np.ndarray:
    """Return the share of every pixel that a slanted, turned and shifted digit covers."""
    path = outline(face, digit)
    box = path.get_extents()
    scale = rng.uniform(10.5, 14.5) / box.height
    placed = (
        Affine2D()
        .translate(-(box.x0 + box.x1) / 2, -(box.y0 + box.y1) / 2)
        .scale(scale * rng.uniform(0.85, 1.15), -scale)
        .skew(rng.uniform(-0.2, 0.2), 0)
        .rotate(rng.uniform(-0.2, 0.2))
        .translate(SIDE / 2 + rng.uniform(-1, 1), SIDE / 2 + rng.uniform(-1, 1))
    )
    ticks = (np.arange(SIDE * FINE) + 0.5) / FINE
    points = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    inside = np.zeros(len(points), bool)
    for polygon in placed.transform_path(path).to_polygons():
        inside ^= Path(polygon).contains_points(points)
    return inside.reshape(SIDE, FINE, SIDE, FINE).mean(axis=(1, 3))


def averaging(side: int) -> np.ndarray:
    """Return the matrix that averages ``side`` pixels onto 16 by area."""
    edges = np.arange(SIDE + 1) * side / SIDE
    pixel = np.arange(side)
    overlap = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return np.clip(overlap, 0, None) * SIDE / side


def background(photos: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Return a random square of a photograph, darkened, in [0, 0.6]."""
    photo = photos[rng.integers(len(photos))]
    side = int(rng.integers(24, 97))
    top, left = (int(rng.integers(length - side)) for length in photo.shape)
    shrink = averaging(side)
    patch = shrink @ photo[top : top + side, left : left + side] @ shrink.T
    return patch * rng.uniform(0.2, 0.6)


def print_digits(per_class: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return images of 16 grey levels, 0 to 15, and labels; ink is brighter than its ground."""
    photos = [photo @ LUMA / 255 for photo in load_sample_images().images]
    labels = np.repeat(np.arange(10, dtype=np.uint8), per_class)
    known = faces()
    images = np.empty((len(labels), SIDE, SIDE), np.uint8)
    for i, label in enumerate(labels):
        cover = ink(known[rng.integers(len(known))], int(label), rng)
        grey = background(photos, rng) * (1 - cover) + rng.uniform(0.7, 1) * cover
        grey += rng.normal(0, 0.03, grey.shape)
        images[i] = np.clip(np.floor(grey * LEVELS + 0.5), 0, LEVELS)
    return images, labels
